"""Plan: what a release would guarantee, cost and keep; nothing is spent."""
