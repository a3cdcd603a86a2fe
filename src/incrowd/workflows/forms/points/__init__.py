"""Points: synthetic points in a public box, checked from certificate and file alone."""
