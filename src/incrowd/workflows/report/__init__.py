"""Report: a certificate as one page for the person who signs."""
