"""Points: synthetic points in a public box."""
