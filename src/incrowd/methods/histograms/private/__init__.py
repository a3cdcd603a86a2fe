"""Private histograms: noise on every count, on that of empty bins too."""
