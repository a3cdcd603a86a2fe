"""Random add and delete: edges are removed and added by coins."""
