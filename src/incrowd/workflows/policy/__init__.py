"""Policy: one YAML file, read and understood."""
