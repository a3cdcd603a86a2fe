"""The calculators: give all but one of the parameters of a promise, get the missing one."""
