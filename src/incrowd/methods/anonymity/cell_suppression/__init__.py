"""Cell suppression: single values are left out so that nobody stands alone."""
