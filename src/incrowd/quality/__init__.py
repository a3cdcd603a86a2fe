"""Quality: what a recoding and its suppression take away."""
