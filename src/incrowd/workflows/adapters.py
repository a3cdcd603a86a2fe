# mypy: disable-error-code="no-any-return"
"""Adapters, until every family has CHECK and PICTURE: modules with functions, as a check or a picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from incrowd.core.claims.claim import Claim
from incrowd.core.statement import Statement
from incrowd.core.steps.step import ClaimBasis
from incrowd.drawing.markup import Description
from incrowd.drawing.picture import Picture
from incrowd.verifier.check import Certified, Check, CheckOutcome, Problem


@dataclass(frozen=True, kw_only=True)
class _ModuleCheck(Check):
    """A check from a module of functions."""

    module: ModuleType

    @property
    def steps(self) -> Any:
        return self.module.STEPS

    def contradiction(self, statement: Statement) -> Problem | None:
        return self.module.contradiction(statement)

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        return self.module.looks(statement, files)

    def recount(self, statement: Statement, output: Any) -> Problem | None:
        return self.module.recount(statement, output)

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> Any:
        return self.module.reopen(statement, files)

    def recompute(self, claim: Claim, basis: ClaimBasis) -> Problem | None:
        own = getattr(self.module, "recompute", None)
        return super().recompute(claim, basis) if own is None else own(claim, basis)

    def undecidable(self, claim: Claim) -> Problem | None:
        own = getattr(self.module, "hidden", None)
        return None if own is None else own(claim)

    @property
    def has_parent(self) -> bool:
        return hasattr(self.module, "descent")

    def compare_parent(self, release: Certified, parent: Certified) -> Problem | None:
        return self.module.descent(release.certificate, parent.certificate, release.files, parent.files)


class _ModulePicture(Picture):
    """A picture from a module of functions."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.evidence = module, module.EVIDENCE

    def description(self, statement: Statement) -> Description:
        return self.module.description(statement)

    def draw(self, statement: Statement, output: Any) -> Any:
        return self.module.picture(statement, output)

    def comparison(self, statement: Statement, output: Any, schema: Any) -> Any:
        own = getattr(self.module, "comparison", None)
        return None if own is None else own(statement, output, schema)


@lru_cache
def adapted_check(module: ModuleType) -> Check:
    """Return a module of functions as a check."""
    version, formats = getattr(module, "VERSION", 1), getattr(module, "STATISTICS", False)
    return _ModuleCheck(
        order=module.ORDER, claims=module.CLAIMS, version=version, statistics_formats=formats, module=module
    )


@lru_cache
def adapted_picture(module: ModuleType) -> Picture:
    """Return a module of functions as a picture."""
    return _ModulePicture(module)
