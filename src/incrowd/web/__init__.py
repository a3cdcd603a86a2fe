"""The server: questions over HTTP, for many people at once."""
