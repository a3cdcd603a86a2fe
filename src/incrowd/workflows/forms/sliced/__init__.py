"""Several tables as a form: groups of columns, each sampled, recoded and suppressed for itself."""
