from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.errors import OutputUnavailable, Refused
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.plan.forecast import plan
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.recover import deliver_hidden, discard_hidden, hidden_releases
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify

POLICY = {
    "incrowd": 1,
    "dataset": {"name": "people"},
    "columns": {"sex": {"categories": ["f", "m"]}},
    "release": {"method": "safe", "rate": "1/2", "epsilon": 1, "delta": "1e-4"},
    "budget": {"epsilon": 10, "delta": "1/10"},
}
_KILLED = """
import os, sys
from pathlib import Path
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.engines.writers import sinks
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to

point, conclude, rename, renamed = sys.argv[1], Ledger.conclude, Path.rename, []

def concluding(self, charge, certificate):
    if point == "before the conclusion":
        os._exit(9)
    conclude(self, charge, certificate)
    if point == "after the conclusion":
        os._exit(9)

def renaming(self, target):
    renamed.append(target)
    if point == "between the renames" and len(renamed) == 2:
        os._exit(9)
    return rename(self, target)

Ledger.conclude, Path.rename = concluding, renaming
release_to("people.csv", "policy.yaml", Destination(Path("out")))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "policy.yaml").write_text(json.dumps(POLICY))
    (tmp_path / "people.csv").write_text("sex\n" + "f\nm\n" * 300)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def killed(point: str) -> None:
    process = subprocess.run([sys.executable, "-c", _KILLED, point], env=os.environ, check=False)
    assert process.returncode == 9
    assert not Path("out").exists()


def charges() -> int:
    return sum(
        entry.kind == "charge" for entry in Ledger.open(f"sqlite:///{Path.cwd()}/.incrowd/ledger.sqlite").entries()
    )


def leftovers() -> list[str]:
    return sorted(path.name for path in Path.cwd().rglob(".*.incrowd-*"))


@pytest.mark.parametrize("point", ["after the conclusion", "between the renames"])
def test_a_release_that_the_ledger_names_is_hidden_refused_again_and_delivered_at_no_cost(
    folder: Path, point: str
) -> None:
    killed(point)
    policy = load_policy(folder / "policy.yaml")
    ledger = Ledger.open(policy.ledger_address)
    (hidden,) = hidden_releases(policy, ledger)
    assert hidden.certificate.id in str(plan(policy).warnings)
    with pytest.raises(Refused, match=r"--recover deliver puts them in place at no cost.* Nothing was charged"):
        release_to("people.csv", policy, Destination(Path("out")))
    other = release_to("people.csv", policy, Destination(Path("other")))
    assert any(hidden.certificate.id in note for note in other.notes)
    assert deliver_hidden(policy, Path("out")) == hidden.certificate
    assert ledger.conclusions(hidden.certificate.id) == (read_certificate(Path("out")).digest(),)
    assert verify(Path("out"), ledger=ledger).passed
    assert (folder / ".incrowd" / "internal" / hidden.certificate.id / "internal.json").is_file()
    assert (charges(), leftovers(), hidden_releases(policy, ledger)) == (2, [], ())
    with pytest.raises(OutputUnavailable, match="nothing to recover"):
        deliver_hidden(policy, Path("out"))


def test_a_release_that_the_ledger_does_not_name_is_removed_and_its_charge_came_to_nothing(folder: Path) -> None:
    killed("before the conclusion")
    policy = load_policy(folder / "policy.yaml")
    assert leftovers() != []
    assert hidden_releases(policy, Ledger.open(policy.ledger_address)) == ()
    assert leftovers() == []
    (lost,) = Ledger.open(policy.ledger_address).unfinished()
    assert not lost.concluded
    destination = Destination("out")  # people write it so
    assert release_to("people.csv", policy, destination).folder == Path("out")
    assert charges() == 2


def test_a_hidden_release_can_be_discarded_and_the_ledger_says_so(folder: Path) -> None:
    killed("after the conclusion")
    policy = load_policy(folder / "policy.yaml")
    discarded = discard_hidden(policy, Path("out"))
    (lost,) = Ledger.open(policy.ledger_address).unfinished()
    assert (lost.charge.body["release"], lost.state) == (discarded.id, "no release")
    assert leftovers() == []


def test_a_hidden_release_whose_files_were_changed_is_not_delivered(folder: Path) -> None:
    killed("after the conclusion")
    policy = load_policy(folder / "policy.yaml")
    (hidden,) = hidden_releases(policy, Ledger.open(policy.ledger_address))
    (hidden.public / "public" / "report.html").write_text("another")
    with pytest.raises(Refused, match="not those that the certificate names"):
        deliver_hidden(policy, Path("out"))
    assert not Path("out").exists()
