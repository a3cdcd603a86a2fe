"""One file per verb: parse, call the workflow, print."""
