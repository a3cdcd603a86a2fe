"""Profile: what a table holds, and a first draft of its policy."""
