"""The calculators: give all but one of the parameters of a guarantee, get the missing one."""
