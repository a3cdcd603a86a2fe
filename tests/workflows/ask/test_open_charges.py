"""What a killed desk charged and did not conclude is concluded by the next one, and never by one beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.workflows.ask.asking import Answered
from incrowd.workflows.ask.desk import Desk
from incrowd.workflows.ask.open_charges import SameQuestion
from incrowd.workflows.ask.prepared import BegunAnswer, PreparedQuestion
from tests.workflows.ask.test_desk import asking, desk_of


def open_names(folder: Path) -> list[str]:
    return [line for path in (folder / ".desks").glob("*.open") for line in path.read_text().split()]


def killed(folder: Path, left: list[BegunAnswer[Answered]], *, kept: bool) -> str:
    """Leave what a process leaves that was killed after its charge, or after its answer was kept."""
    with desk_of(folder) as desk:
        prepared = desk.prepare(asking())
        assert isinstance(prepared, PreparedQuestion)
        begun = prepared.begin()
        left.append(begun)  # a process that is killed tidies nothing up
        (release,) = open_names(folder)
        if kept:
            conclude = Ledger.conclude
            try:
                Ledger.conclude = lambda *_: None  # type: ignore[method-assign,assignment]
                begun.finish()
            finally:
                Ledger.conclude = conclude  # type: ignore[method-assign]
            (folder / ".desks" / "dead.open").write_text(f"{release}\n")
    return release


def test_a_charge_is_named_from_before_it_until_it_is_concluded(tmp_path: Path) -> None:
    with desk_of(tmp_path) as desk:
        begun = desk.prepare(asking()).begin()
        (release,) = open_names(tmp_path)
        assert not desk.ledger.conclusions(release)
        with desk_of(tmp_path) as other:
            assert isinstance(other, Desk)
            assert not desk.ledger.conclusions(release), "the other desk is at work"
        begun.finish()
        assert open_names(tmp_path) == []
        assert len(desk.ledger.conclusions(release)) == 1
    assert not list((tmp_path / ".desks").glob("*.open"))


def test_the_same_question_at_two_desks_is_paid_for_once(tmp_path: Path) -> None:
    with desk_of(tmp_path) as desk, desk_of(tmp_path) as other:
        begun = desk.prepare(asking()).begin()
        with pytest.raises(SameQuestion):
            other.prepare(asking()).begin()
        first = begun.finish()
        second = other.ask(asking())
        assert (second.repeated, second.certificate.id) == (True, first.certificate.id)
        assert sum(entry.kind == "charge" for entry in desk.ledger.entries()) == 1
    assert not list((tmp_path / ".desks").glob("*.flight"))


def test_nothing_came_of_what_a_killed_desk_charged(tmp_path: Path) -> None:
    left = list[BegunAnswer[Answered]]()
    release = killed(tmp_path, left, kept=False)
    with desk_of(tmp_path) as desk:
        assert desk.ledger.conclusions(release) == (None,)
        assert [each.state for each in desk.ledger.unfinished()] == ["nothing came of it"]


def test_an_answer_that_a_killed_desk_kept_came_of_its_charge(tmp_path: Path) -> None:
    release = killed(tmp_path, [], kept=True)
    with desk_of(tmp_path) as desk:
        again = desk.ask(asking())
        assert again.repeated
        assert desk.ledger.conclusions(release) == (again.certificate.digest(),)
