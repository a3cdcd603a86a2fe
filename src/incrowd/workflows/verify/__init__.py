"""Verify: a certificate held against its files, its policy, its ledger and its signature."""
