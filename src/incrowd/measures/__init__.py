"""Numbers read off a release."""
