"""What several histograms share: bins, crowds, noise, and how their tables are checked and drawn."""
