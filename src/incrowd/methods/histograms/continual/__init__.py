"""Running counts over periods: one plan for all of them, in integers, with fresh noise in each period."""
