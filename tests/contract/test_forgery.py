"""Forged certificates: one leaf or item changed at a time, the id made to fit, for every method, on three levels."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from incrowd.core.certificate import VERSION
from incrowd.core.codec import digest
from incrowd.verifier.check import Verdict
from incrowd.verifier.files import CERTIFICATE, REPORT, file_of
from incrowd.workflows.certificates import certificate_of
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import References, verify
from tests.contract.examples import POLICIES, rows
from tests.contract.forging import Forgery, caught, fitting, forgeries, placed
from tests.contract.forging import Path as Place

Judged = tuple[Forgery, str | None]
PLAN = ("guarantee", "claims", "steps")
SAID = ("guarantee", "claims", "glossary")
"""What a certificate alone vouches for, leaf by leaf: losses, reasons, assumptions, claims, and what they mean."""
ELSEWHERE = ("dataset", "accounting", "ledger", "schema", "outputs", "method")
"""Objects whose every key is known, and whose values are held against policy, ledger, files or signature."""


@dataclass(frozen=True)
class Made:
    """A release in a folder, and what it was made from."""

    folder: Path
    policy: Policy

    @property
    def plain(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / CERTIFICATE).read_text(encoding="utf-8")))


@pytest.fixture(scope="module", params=[pytest.param(name, id=name) for name in POLICIES])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A release by a method, in the first way in which the contract suite uses it."""
    return release_of(next(iter(POLICIES[request.param].values())), tmp_path_factory.mktemp("forged"))


@pytest.fixture(scope="module")
def judged(made: Made) -> list[Judged]:
    """Every forgery of the certificate, with what the certificate alone shows to be wrong."""
    return [(forgery, caught(forgery.plain)) for forgery in forgeries(made.plain)]


def release_of(policy: dict[str, Any], folder: Path) -> Made:
    """Release under a policy that lies in a folder."""
    file = folder / "policy.yaml"
    file.write_text(json.dumps(policy, default=str), encoding="utf-8")
    read = load_policy(file)
    release_to(rows(), read, Destination(folder / "out", "csv"))
    return Made(folder / "out", read)


def test_the_certificate_itself_is_right(made: Made) -> None:
    assert caught(made.plain) is None
    assert fitting(made.plain) == made.plain, "the forger knows how ids are made"


def test_the_certificate_alone_shows_every_change_of_what_it_says(made: Made, judged: list[Judged]) -> None:
    """Level (a): loss, claim, number, sentence, assumption, limit, and every unknown key at every level."""
    honest = certificate_of(made.plain)
    for forgery, problem in judged:
        assert problem or not _says(forgery), forgery.name
        if forgery.top == "steps" and problem is None:  # it changes nothing that is guaranteed or claimed
            read = certificate_of(forgery.plain)
            assert (read.guarantee, read.claims) == (honest.guarantee, honest.claims), forgery.name


def _says(forgery: Forgery) -> bool:
    added = forgery.change == "a key added" and forgery.top not in ("evidence", "approvals")
    known = forgery.top in ELSEWHERE and forgery.change == "removed" and isinstance(forgery.leaf, str)
    optional = forgery.leaf in ("commitment", "left", "period", "version", "unbounded")
    return forgery.top in SAID or added or (known and not optional)


def test_with_the_policy_every_leaf_of_the_plan_is_shown(made: Made, judged: list[Judged]) -> None:
    """Level (b): steps, guarantee, claims and schema are made again and compared whole."""
    plan = made.policy.plan
    expected = (plan.steps, plan.guarantee, plan.claims)
    for forgery, problem in judged:
        if forgery.top in PLAN or forgery.path[:2] == ("schema", "columns"):
            assert problem or _differs(forgery.plain, made, expected), forgery.name


def _differs(plain: dict[str, Any], made: Made, expected: tuple[Any, ...]) -> bool:
    read = certificate_of(plain)
    columns = [(c.name, str(c.role), str(c.type)) for c in made.policy.schema.columns]
    same = [(c.name, c.role, c.type) for c in read.schema.columns] == columns
    return (read.steps, read.guarantee, read.claims) != expected or not same


def test_the_ledger_shows_every_change(made: Made, judged: list[Judged]) -> None:
    """Level (c): whatever is changed, files with recomputed hashes included, the digest is another."""
    ledger = find_book(made.policy)
    assert ledger is not None
    name = made.plain["id"]
    known = ledger.conclusions(name)
    assert digest_of(made.plain) in known
    for forgery, _ in judged:
        assert digest_of({**forgery.plain, "id": name}) not in known, forgery.name


def digest_of(plain: dict[str, Any]) -> str:
    """Return the digest of a plain certificate, as a forger would compute it."""
    return digest(f"incrowd certificate {VERSION}", {**plain, "signature": None})


def forged_folders(made: Made, into: Path) -> Iterator[tuple[str, Path, References]]:
    """Yield folders that were forged in ways that need the files, and what they are held against."""
    ledger = find_book(made.policy)
    names = [file["name"] for file in made.plain["outputs"]]
    for name in names:
        for rehashed in (False, True):
            folder = into / f"{name}-{rehashed}"
            shutil.copytree(made.folder, folder)
            with (folder / name).open("a", encoding="utf-8") as file:
                file.write("<!-- certified -->" if name == REPORT else _line(folder / name))
            if rehashed:
                _rehash(folder, made.plain, name)
            yield f"{name} changed, {'with' if rehashed else 'without'} its hash", folder, References(ledger=ledger)


def _line(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace").splitlines()[-1] + "\n"


def _rehash(folder: Path, plain: dict[str, Any], name: str) -> None:
    place: Place = ("outputs", [file["name"] for file in plain["outputs"]].index(name))
    new = file_of(folder / name)
    forged = placed(plain, place, {"name": name, "sha256": new.sha256, "bytes": new.bytes})
    (folder / CERTIFICATE).write_text(json.dumps(forged), encoding="utf-8")


def test_changed_files_are_found(made: Made, tmp_path: Path) -> None:
    for name, folder, held in forged_folders(made, tmp_path):
        assert not verify(folder, **held).passed, name
        if "without" in name or REPORT in name:  # these show without the ledger too
            assert not verify(folder).passed, name


def test_without_ledger_and_signature_nobody_is_named(made: Made) -> None:
    found = verify(made.folder)
    assert found.passed
    assert not found.vouched
    if found.complete:
        assert found.verdict == "consistent; origin not verified"
    held = verify(made.folder, ledger=find_book(made.policy), policy=made.policy)
    assert held.vouched
    assert {each.about: each.verdict for each in held.findings}["policy"] is Verdict.PASSED
