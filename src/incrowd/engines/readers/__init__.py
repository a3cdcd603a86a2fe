"""One file for each family of formats: from bytes somewhere to Arrow batches."""
