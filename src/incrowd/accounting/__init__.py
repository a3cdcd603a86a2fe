"""What guarantees cost, and who has spent what."""
