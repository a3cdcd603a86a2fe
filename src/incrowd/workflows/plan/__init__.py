"""Plan: what a release would promise, cost and keep; nothing is spent."""
