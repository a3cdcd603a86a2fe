"""Safe microdata: a secret sample, recoded blindly, without what is rare."""
