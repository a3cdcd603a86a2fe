"""Cases that are refused: a policy, a question, a payment, a release, a coarser table; and what is said to each."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path
from typing import Any

from incrowd.errors import IncrowdError
from incrowd.queries.catalog import Catalog, Relation
from incrowd.queries.classical.protections import protection_of
from incrowd.queries.classical.sets import plain_question
from incrowd.workflows.ask.asking import Asking, AskingTogether
from incrowd.workflows.ask.desk import open_desk
from incrowd.workflows.coarsen.method import Coarser, coarsen
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.publish import Destination, release_to
from tests.golden.version_1 import adapter
from tests.golden.version_1.files import FOLDERS, INPUTS
from tests.policies import written
from tests.queries.language.hospital import CATALOG

Given = Mapping[str, Any]


def refusal(kind: str, given: Given, folder: Path) -> list[str] | None:
    """Return the name and the text of the error that a case ends in, or None; files are written into a fresh folder."""
    try:
        TRIALS[kind](given, folder)
    except IncrowdError as error:
        return [type(error).__name__, str(error).replace(f"{folder}/", "").replace(f"{FOLDERS}/", "")]
    return None


def _policy(given: Given, folder: Path) -> None:
    for name in ("jobs.csv", "site.key", "population.csv"):
        shutil.copy(INPUTS / name, folder / name)
    with chdir(folder):
        adapter.told(load_policy(given["policy"]))


def _file(given: Given, folder: Path) -> None:
    """Read a policy from a file, whose lines are named."""
    with chdir(folder):
        Path("policy.yaml").write_text(given["text"], encoding="utf-8")
        adapter.told(load_policy("policy.yaml"))


def _question(given: Given, _: Path) -> None:
    adapter.asked(given["sql"], given["terms"], CATALOG)


def _batch(given: Given, _: Path) -> None:
    adapter.asked_together(given["sqls"], given["terms"], CATALOG)


def _classical(given: Given, _: Path) -> None:
    schema = load_policy(INPUTS / "teaching.yaml").schema
    plain_question(given["sql"], Catalog((Relation("teaching", schema, dataset="teaching"),)))


def _protection(given: Given, _: Path) -> None:
    protection_of(given["how"])


def _desk(given: Given, folder: Path) -> None:
    """Ask a desk whose ledger is fresh; of several questions the last is refused."""
    for name in given["desk"]:
        plain = (INPUTS / f"{name}.yaml").read_text(encoding="utf-8")
        (folder / f"{name}.yaml").write_text(plain, encoding="utf-8")
    for file in INPUTS.glob("*.csv"):
        shutil.copy(file, folder / file.name)
    with open_desk([load_policy(folder / f"{name}.yaml") for name in given["desk"]]) as desk:
        for sql, terms in given["asked"]:
            if isinstance(sql, list):
                desk.price_batch(AskingTogether(tuple(sql), adapter.terms_of(terms)))
            else:
                desk.ask(Asking(sql, adapter.terms_of(terms), given.get("analyst"), given.get("account")))


def _release(given: Given, folder: Path) -> None:
    """Release by several policies, one after the other; the last is refused."""
    for number, plain in enumerate(given["policies"]):
        form = given.get("form", "csv")
        policy = written(plain, folder, f"{number}.yaml")
        release_to(INPUTS / given["data"], policy, Destination(folder / f"out-{number}", form))


def _coarsen(given: Given, folder: Path) -> None:
    policy = load_policy(INPUTS / f"{given['policy']}.yaml")
    wanted = Coarser(given.get("levels", {}), tuple(given.get("columns", ())))
    coarsen(FOLDERS / given["folder"], policy, wanted, folder / "out")


TRIALS = {
    "policy": _policy,
    "file": _file,
    "question": _question,
    "batch": _batch,
    "classical": _classical,
    "protection": _protection,
    "desk": _desk,
    "release": _release,
    "coarsen": _coarsen,
}
