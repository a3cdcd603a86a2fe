"""Protected tables: counts or sums with all their totals, as statistical offices publish them."""
