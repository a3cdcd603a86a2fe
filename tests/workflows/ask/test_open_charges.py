"""What a killed desk charged and did not conclude is concluded by the next one, and never by one beside it."""

from __future__ import annotations

from pathlib import Path

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.workflows.ask.desk import BegunAnswer, Desk, PreparedQuestion
from tests.workflows.ask.test_desk import asking, desk_of


def open_names(folder: Path) -> list[str]:
    return [line for path in (folder / ".desks").glob("*.open") for line in path.read_text().split()]


def killed(folder: Path, left: list[BegunAnswer], *, kept: bool) -> str:
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


def test_nothing_came_of_what_a_killed_desk_charged(tmp_path: Path) -> None:
    left = list[BegunAnswer]()
    release = killed(tmp_path, left, kept=False)
    with desk_of(tmp_path) as desk:
        assert desk.ledger.conclusions(release) == (None,)
        assert [each.state for each in desk.ledger.unfinished()] == ["nothing came of it"]
        assert not desk.ask(asking()).repeated


def test_an_answer_that_a_killed_desk_kept_came_of_its_charge(tmp_path: Path) -> None:
    release = killed(tmp_path, [], kept=True)
    with desk_of(tmp_path) as desk:
        again = desk.ask(asking())
        assert again.repeated
        assert desk.ledger.conclusions(release) == (again.certificate.digest(),)
