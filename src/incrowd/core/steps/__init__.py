"""Steps: what happens to rows, in order; each knows what it adds to the guarantee, what it claims, and its sentence."""
