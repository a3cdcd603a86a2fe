"""Claims: what is stated about a release; one class a kind, with its theorem, its conditions and its sentence."""
