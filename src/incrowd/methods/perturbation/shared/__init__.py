"""What masks share: steps and claims, rows in memory, the way from a plan to masked rows, and their check."""
