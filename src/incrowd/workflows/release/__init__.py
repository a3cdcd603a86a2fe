"""Release: a policy and a table in, a certified release out: prepare, perform, certify, publish."""
