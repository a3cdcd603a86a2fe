"""Attacks as Opinion 05/2014 of the Article 29 Working Party asks for them: singling out, linkability, inference."""
