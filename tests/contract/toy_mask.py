"""A whole mask in one file: text is cut to its first characters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.schema import Schema
from incrowd.core.terms import Theorem
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.shared.frame import RowFrame
from incrowd.methods.perturbation.shared.masks import Mask, MaskInput
from incrowd.methods.perturbation.shared.output import MaskCheck, MaskPicture
from incrowd.methods.perturbation.shared.steps import ColumnMasking, column_list


@dataclass(frozen=True, kw_only=True)
class CutText(ColumnMasking):
    """Text is cut to its first characters."""

    kind: ClassVar[str] = "cut text"
    title: ClassVar[str] = "Cut text"
    row_by_row: ClassVar[bool] = True
    source: ClassVar[Theorem] = Theorem("toy-prefix", "a prefix of a text has the characters of the text")

    length: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.length < 1:
            raise InvalidParameter("a prefix has at least one character.")

    @property
    def sentence(self) -> str:
        return f"Text in {column_list(self.columns)} is cut to its first {self.length} characters."


@dataclass(frozen=True)
class Prefix(Mask):
    """Text is cut to its first characters.

    Guarantee: none to people.  Assumes: nothing.  Source: this file.
    """

    name: ClassVar[str] = "prefix"

    columns: tuple[str, ...]
    length: int = 1

    def step(self, schema: Schema) -> CutText:
        if any(schema[name].type != "text" or schema[name] in schema.unreleased for name in self.columns):
            raise InvalidParameter("only released text has a prefix: name other columns.")
        return CutText(columns=self.columns, length=self.length, **self.scope(schema, self.columns))

    def masked(self, rows: MaskInput) -> RowFrame:
        columns: dict[str, Any] = {name: pc.cast(rows.frame.values(name), pa.string()) for name in self.columns}
        return rows.frame.replaced(
            **{name: pc.utf8_slice_codeunits(text, 0, self.length) for name, text in columns.items()}
        )

    def settings(self) -> dict[str, Any]:
        return {"prefix": ", ".join(self.columns), "length": self.length}


CHECK = MaskCheck(CutText)
PICTURE = MaskPicture()
METHOD = Prefix
