"""The meaning of a kind, a field or a key never changes: what a certificate says stays what it said.

Until the format is frozen, `python -m tests.golden.test_glossary` writes the file anew, in the commit that changes it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from incrowd.core.steps.step import Step
from incrowd.workflows.registry import names, vocabulary

FILE = Path(__file__).with_name("glossary.json")
_SHOW = (
    "import json; from incrowd.workflows.registry import whole_glossary; "
    "print(json.dumps(whole_glossary(), indent=1, ensure_ascii=False, sort_keys=True))"
)


def shown() -> str:
    """The glossary, by a process of its own: terms that tests declare are not in it."""
    return subprocess.run([sys.executable, "-c", _SHOW], capture_output=True, text=True, check=True).stdout


def test_no_word_of_a_certificate_changes_its_meaning() -> None:
    assert json.loads(shown()) == json.loads(FILE.read_text(encoding="utf-8"))


def test_reasons_in_a_ledger_are_told_in_words_whatever_is_loaded() -> None:
    """A data subject reads them, and the method of the release need not be loaded then."""
    show = (
        "from incrowd.core.guarantee import Guarantee; from incrowd.workflows.registry import reasons; "
        "plain = {'guarantee': 1, 'loss': {'loss': 'pure', 'epsilon': '1'}, 'unit': {'kind': 'row', 'adjacency': "
        "'add-remove'}, 'because': ['best-of-random-runs'], 'assumes': [], 'delta': '0'}; "
        "print(reasons(Guarantee.from_json(plain)))"
    )
    made = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    assert made.stdout.startswith("Papernot & Steinke 2022")


def test_within_a_method_no_two_steps_are_written_the_same_way() -> None:
    for name in names():
        written = [_written(step) for step in vocabulary(name).steps]
        assert len(written) == len(set(written)), name


def _written(step: type[Step]) -> tuple[str, ...]:
    from dataclasses import fields

    return (step.kind, *sorted(str(each.metadata.get("name", each.name)) for each in fields(step)))  # type: ignore[arg-type]


if __name__ == "__main__":
    FILE.write_text(shown(), encoding="utf-8")
