"""One file for each format that is written: from released values to bytes that hold nothing else."""
