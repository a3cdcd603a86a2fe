"""The server: queries over HTTP, for many people at once."""
