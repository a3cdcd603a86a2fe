"""Model file: a published model as plain JSON, which anyone can read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

from incrowd.errors import InvalidParameter

MODEL = "model.json"
"""The name of the file."""


class ModelFile:
    """A model with a plain form, which is written beside its release and read again from there.

    It is made from noisy numbers alone, so that everybody may use it as often as they like.
    """

    def to_json(self) -> dict[str, Any]:
        """Return the model as plain JSON."""
        raise NotImplementedError

    @classmethod
    def from_json(cls, plain: object) -> Self:
        """Read what `to_json` wrote, or refuse it."""
        raise NotImplementedError

    def to_text(self) -> str:
        """Return the text of its file."""
        return json.dumps(self.to_json(), ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model from its file, or from the folder of a release."""
        file = Path(path)
        file = file / MODEL if file.is_dir() else file
        try:
            plain = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InvalidParameter(f"{file} cannot be read as a model ({type(error).__name__}).") from None
        return cls.from_json(plain)
