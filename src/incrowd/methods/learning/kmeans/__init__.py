"""K-means: centers of clusters, moved again and again to the noisy mean of their rows."""
