from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from tests.attacks.crowds import crowd
from tests.cli.hospital import patients, policy
from tests.cli.running import Runner

RATES = ("success", "baseline", "control")


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """Write a table, what somebody published from it, and outsiders."""
    people, outsiders = crowd(300, 1), crowd(200, 2)
    for name, table in (("a", people), ("b", people.select(["zip", "age", "ill"])), ("c", outsiders)):
        pyarrow.csv.write_csv(table, tmp_path / f"{name}.csv")
    return tmp_path


@pytest.fixture
def released(run: Runner, tmp_path: Path) -> Path:
    patients(tmp_path)
    policy(tmp_path)
    assert run("release --policy policy.yaml --out out").code == 0
    (tmp_path / "others.csv").write_text(
        "id,age,sex,ill\n"
        + "".join(f"Q{n},{n * 13 % 100},{'FM'[n % 2]},{('flu', 'gout')[n % 2]}\n" for n in range(100))
    )
    return tmp_path / "out"


@pytest.mark.usefixtures("foreign")
def test_what_others_published_is_attacked_too(run: Runner) -> None:
    outcome = run("attack --original a.csv --published b.csv --known zip,age --secret ill --control c.csv --json")
    assert outcome.code == 0, outcome.err
    findings = {each["attack"]: each for each in outcome.json["findings"]}
    assert set(findings) >= {"linkage", "homogeneity", "skewness", "inference", "linkability", "singling-out"}
    for finding in findings.values():
        assert {"attack", "success", "baseline", "control", "knows", "verdict"} <= set(finding)
        for rate in RATES:
            assert finding[rate]["low"] <= finding[rate]["estimate"] <= finding[rate]["high"]
    assert findings["linkage"]["verdict"] == "leak"
    assert "stories" not in outcome.json


@pytest.mark.usefixtures("foreign")
def test_a_file_of_another_program_is_read_with_its_own_marks(run: Runner, tmp_path: Path) -> None:
    """Semicolons between columns, commas in decimals, in the encoding of another machine."""
    rows = crowd(300, 1).select(["zip", "worth", "ill"]).to_pylist()
    noisy = (f"{row['zip']};{int(row['worth']) + number % 7 / 8:.2f};{row['ill']}" for number, row in enumerate(rows))
    text = "zip;worth;ill\n" + "".join(line.replace(".", ",") + "\n" for line in noisy)
    (tmp_path / "d.csv").write_text(text.replace("gout", "goût"), encoding="cp1252")
    line = "attack --original a.csv --published d.csv --known zip,worth --control c.csv --attack linkage --json"
    (finding,) = run(line).json["findings"]
    assert finding["success"]["estimate"] > 0.7
    assert finding["verdict"] == "leak"


@pytest.mark.usefixtures("foreign")
def test_without_outsiders_only_a_guess_is_beaten(run: Runner) -> None:
    line = "attack --original a.csv --published b.csv --known zip,age --secret ill --attack skewness"
    found = run(f"{line} --json").json["findings"]
    assert [(each["control"], each["verdict"]) for each in found] == [(None, "beats guessing")]
    assert "Only a control group can show" in run(line).out.replace("\n ", " ")


@pytest.mark.usefixtures("foreign")
def test_above_a_threshold_the_exit_code_is_one(run: Runner) -> None:
    line = "attack --original a.csv --published b.csv --known zip,age --secret ill --control c.csv --attack linkage"
    assert run(f"{line} --threshold 1").code == 0
    assert run(f"{line} --threshold 0.1").code == 1
    assert run(f"{line} --threshold linkability=0.1").code == 1
    assert run(f"{line} --threshold inference=0.1").code == 0
    outcome = run(f"{line} --threshold linkage=0.1 --json")
    assert (outcome.code, outcome.json["above"]) == (1, [0])


@pytest.mark.usefixtures("foreign")
def test_a_victim_is_replayed_and_a_sweep_tries_every_combination(run: Runner) -> None:
    line = "attack --original a.csv --published b.csv --known zip,age --control c.csv --attack linkage"
    assert "The attacker knows of a person: zip 1" in run(f"{line} --replay").out
    assert len(run(f"{line} --replay --json").json["stories"][0]) == 3
    swept = run(f"{line} --sweep 2 --attacker prosecutor --attacker marketer --json").json["findings"]
    assert len(swept) == 6
    assert {each["attacker"] for each in swept} == {"prosecutor", "marketer"}


@pytest.mark.usefixtures("foreign")
def test_a_page_shows_bars_with_a_control_and_a_table(run: Runner, tmp_path: Path) -> None:
    line = "attack --original a.csv --published b.csv --known zip,age --secret ill --control c.csv --attack skewness"
    assert run(f"{line} --report page.html").code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for part in ("INTERNAL", "<svg", "control group", "Rates and their confidence intervals", "One victim of skewness"):
        assert part in page, part
    assert "<script" not in page
    assert run(f"{line} --report page.html").code == 2


@pytest.mark.usefixtures("released")
def test_a_release_is_attacked_and_the_look_recorded(run: Runner) -> None:
    outcome = run("attack out --policy policy.yaml --control others.csv --attack skewness --json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["look"]
    assert run("ledger show --entries --json").json["entries"][-1]["body"] == {"dataset": "patients", "verb": "attack"}


def test_nothing_reaches_the_folder_of_the_release(run: Runner, released: Path) -> None:
    before = {path.name: path.read_bytes() for path in released.iterdir()}
    for target in ("out/page.html", "out/deeper/page.html"):
        outcome = run(f"attack out --policy policy.yaml --attack skewness --report {target}")
        assert outcome.code == 2
        assert "passed on as a whole" in outcome.err
    assert run("attack out --against patients.csv --attack linkage --known age,sex").code == 0
    assert {path.name: path.read_bytes() for path in released.iterdir()} == before


def test_a_release_of_other_data_is_refused(run: Runner, released: Path, tmp_path: Path) -> None:
    patients(tmp_path, rows=40)
    outcome = run("attack out --policy policy.yaml")
    assert outcome.code == 2
    assert "made from other data" in outcome.err
    policy(tmp_path, dataset={"name": "others"})
    outcome = run("attack out --policy policy.yaml")
    assert outcome.code == 2
    assert "not the policy" in outcome.err


@pytest.mark.usefixtures("foreign")
@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("--known zip,height", "height"),
        ("--known zip,sex", "'sex' was not released"),
        ("--known zip --secret worth", "worth"),
        ("--known zip --attack magic", "there is no attack"),
        ("--known zip --attacker spy", "there is no attacker"),
        ("--known zip --attack homogeneity", "--secret"),
        ("--known zip --threshold 2", "between 0 and 1"),
        ("--known zip --threshold luck=0.1", "luck"),
        ("--known zip --slack zip", "such as age=2"),
        ("--known zip,age --sweep 0", "at least one column"),
        ("--known zip --also b.csv --attack differencing --secret ill", "same rows"),
        ("--known zip --control few.csv", "too few"),
        ("--known zip --control b.csv", "control group has no column"),
        ("--known zip --attack membership --secret ill", "needs a control group"),
    ],
)
def test_bad_input_is_named(run: Runner, foreign: Path, line: str, why: str) -> None:
    pyarrow.csv.write_csv(crowd(5, 3), foreign / "few.csv")
    outcome = run(f"attack --original a.csv --published b.csv {line} --json")
    assert outcome.code == 2, outcome.err
    assert why in json.loads(outcome.err)["error"]


@pytest.mark.usefixtures("foreign")
def test_tables_that_do_not_belong_together_are_refused(run: Runner, tmp_path: Path) -> None:
    pyarrow.csv.write_csv(pa.table({"zip": ["77777"] * 50, "age": ["130"] * 50}), tmp_path / "d.csv")
    outcome = run("attack --original a.csv --published d.csv --known zip,age")
    assert outcome.code == 2
    assert "stands for nobody in the data" in outcome.err
    pyarrow.csv.write_csv(pa.table({"color": ["red"] * 50}), tmp_path / "e.csv")
    assert "no column in common" in run("attack --original a.csv --published e.csv").err
    assert run("attack --original a.csv").code == 2
    assert run("attack").code == 2


def test_an_audit_says_what_it_could_have_shown_and_that_passing_proves_nothing(run: Runner, tmp_path: Path) -> None:
    patients(tmp_path, rows=30)
    policy(
        tmp_path,
        release={"method": "private-histogram", "columns": ["sex"], "epsilon": 1},
    )
    outcome = run("attack --policy policy.yaml --attack audit --trials 10 --json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["audit"]["claim"] == pytest.approx(1.0)
    assert outcome.json["audit"]["ceiling"] < 1, "so that it cannot refute by chance"
    assert "proves nothing" in outcome.json["audit"]["sentence"]
    assert run("attack out --attack audit").code == 2
