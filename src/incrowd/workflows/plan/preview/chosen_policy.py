"""The policy of a choice: what was written, with the levels, k and rate that a private look chose, marked as such."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.errors import InvalidParameter, OutputUnavailable
from incrowd.workflows.policy.document import read_document

if TYPE_CHECKING:
    from incrowd.core.steps.choices import LevelsByLook
    from incrowd.workflows.plan.preview.output import KeptEstimate
    from incrowd.workflows.plan.preview.preview import PreviewResult

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
_CERTIFICATE = ".look.json"


@dataclass(frozen=True)
class ChosenPolicy:
    """A policy file, the new one that a look is to write beside it, and the look's certificate beside that."""

    source: Path
    target: Path

    @property
    def certificate(self) -> Path:
        """Where the look's certificate goes."""
        return self.target.with_name(self.target.name + _CERTIFICATE)

    def check(self) -> None:
        """Raise, before anything is charged, if the new policy could not be written or would mean something else."""
        if self.target.resolve().parent != self.source.resolve().parent:
            raise InvalidParameter(
                f"{self.target} must be in the folder of {self.source}: its ledger, source and hierarchies are "
                "relative to it."
            )
        for path in (self.target, self.certificate):
            if path.exists():
                raise OutputUnavailable(f"{path} already exists. Choose another name for --write.")
        replaced(self._text(), {"method": "safe"}, "")

    def write(self, looked: PreviewResult) -> None:
        """Write policy and certificate; the charge is made, so that nothing that exists is in the way any more."""
        section = looked.section
        note = (
            f"  # chosen by a private preview: entry {looked.chosen.entry} of the ledger; see {self.certificate.name}"
        )
        try:
            for path, text in (
                (self.certificate, looked.certificate.to_text()),
                (self.target, replaced(self._text(), section, note)),
            ):
                with path.open("x", encoding="utf-8") as file:
                    file.write(text)
        except OSError as error:
            raise OutputUnavailable(
                f"{self.target} was not written: {error.strerror or 'the operating system refused'}. The preview is "
                f"charged: write levels, k, rate and chosen: {json.dumps(section['chosen'])} into a policy by hand."
            ) from None

    def _text(self) -> str:
        return self.source.read_text(encoding="utf-8")


def chosen_section(release: Mapping[str, Any], choice: KeptEstimate, chosen: LevelsByLook) -> dict[str, Any]:
    """Return the `release:` section of a choice: its levels, k and rate, and by which look they were chosen."""
    retained = {key: value for key, value in release.items() if key in ("method", "weights")}
    return retained | {
        "levels": {name: str(level) for name, level in choice.levels.items()},
        "k": str(choice.k),
        "rate": str(choice.rate),
        "delta": str(release["delta"]),
        "chosen": {
            "epsilon": str(chosen.epsilon),
            "ledger": chosen.ledger,
            "entry": str(chosen.entry),
            "hash": chosen.hash,
        },
    }


def replaced(text: str, section: Mapping[str, Any], note: str) -> str:
    r"""Return a policy with another `release:` section; all else stays as it was written, comments too.

    A policy that is written in braces, as JSON is, loses its comments.

    >>> print(replaced("a: 1\nrelease:\n  k: 5\n# of the owner\nb: 02\n", {"k": "7", "levels": {"x": "1"}}, "  # new"))
    a: 1
    release:  # new
      k: 7
      levels: {x: 1}
    # of the owner
    b: 02
    """
    document = read_document(text)
    content = {**document.content, "release": dict(section)}
    start = document.lines[("release",)] - 1
    later = [line - 1 for path, line in document.lines.items() if len(path) == 1 and line - 1 > start]
    lines = text.splitlines()
    end = min(later, default=len(lines))
    while end > start + 1 and _is_comment(lines[end - 1]):
        end -= 1
    spliced = "\n".join([*lines[:start], f"release:{note}", *map(_line, section.items()), *lines[end:]]) + "\n"
    try:
        same = read_document(spliced).content == content
    except InvalidParameter:
        same = False
    return spliced if same else json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _is_comment(line: str) -> bool:
    return not line.strip() or line.startswith("#")


def _line(item: tuple[str, Any]) -> str:
    key, value = item
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_word(name)}: {_word(str(part))}" for name, part in value.items())
        return f"  {key}: {{{inner}}}"
    return f"  {key}: {_word(str(value))}"


def _word(text: str) -> str:
    return text if _PLAIN.fullmatch(text) and text.lower() != "null" else json.dumps(text, ensure_ascii=False)
