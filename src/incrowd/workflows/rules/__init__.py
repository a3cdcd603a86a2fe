"""Rules of statistical offices: read as they are written, and said what they promise."""
