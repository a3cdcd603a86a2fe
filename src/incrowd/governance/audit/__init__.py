"""What was asked, by whom, and what came of it."""
