"""What the methods of learning share."""
