"""The language of questions: SQL in, bound questions out."""

from incrowd.queries.language.reading import is_explain
from incrowd.queries.language.understanding import understand

__all__ = ["is_explain", "understand"]
