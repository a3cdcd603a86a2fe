"""Export: a release, written again in a format that others read; neither rows nor a ledger are touched."""
