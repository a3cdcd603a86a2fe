"""Criteria: conditions that an equivalence class must meet before it is released."""
