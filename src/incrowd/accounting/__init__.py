"""What promises cost, and who has spent what."""
