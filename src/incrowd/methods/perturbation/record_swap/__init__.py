"""Record swap: households that stand out change places with like ones of another area."""
