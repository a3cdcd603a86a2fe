"""The collector of a survey over HTTP: its page, its scripts, its estimates."""
