"""Chain: several masks, one after the other, in one policy."""
