"""The engine of a cluster: rows stay on the workers, and only counts come back."""
