"""Classical answers: exact or nearly so, with the protections that were tried before differential privacy."""
