"""Running one command in this process."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import Any

import pytest

from incrowd.cli.main import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Runner:
    capsys: pytest.CaptureFixture[str]

    def __call__(self, line: str) -> Outcome:
        code = main(shlex.split(line))
        captured = self.capsys.readouterr()
        return Outcome(code, captured.out, captured.err)
