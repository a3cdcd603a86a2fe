"""Local recoding: rounds of generalization, each on what the round before could not release."""
