"""`incrowd query` as a person meets it: prices, answers, batches, folders, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import Runner

POLICY = """\
incrowd: 1
dataset: {name: people}
source: people.csv
columns:
  sex: {categories: [F, M]}
  age: {type: integer, bounds: [0, 120]}
queries: {}
budget: {epsilon: 3, delta: 1e-6}
"""
COUNT = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "people.csv").write_text("sex,age\n" + "F,30\nM,41\nF,\n" * 100)
    return tmp_path


def test_a_price_spends_nothing_and_explain_says_the_same(people: Path, run: Runner) -> None:
    for line in (f'query "{COUNT}" --price', f'query "EXPLAIN PRIVACY {COUNT}"'):
        found = run(f"{line} --policy policy.yaml --epsilon 1")
        assert found.code == 0
        assert "± 3" in found.out
        assert "Nothing was asked and nothing was spent." in found.out
    left = run(f'query "{COUNT}" --policy policy.yaml --epsilon 1 --price --json').json["left"]["people"]
    assert left == {"epsilon": "2", "delta": "0.000001"}


def test_an_answer_shows_its_numbers_its_cost_and_what_is_left(people: Path, run: Runner) -> None:
    found = run(f'query "{COUNT}" --policy policy.yaml --epsilon 1')
    assert found.code == 0
    assert "epsilon 2, delta 1e-6" in found.out
    assert "pure differential privacy" in found.out
    again = run(f'query "{COUNT}" --policy policy.yaml --epsilon 1')
    assert "Asked before" in again.out


def test_a_price_names_the_worst_case_and_the_typical_one(people: Path, run: Runner) -> None:
    found = run(
        'query "SELECT STDDEV(age) AS s, MEDIAN(age) AS m FROM people" --policy policy.yaml --epsilon 1 --price'
    )
    words = " ".join(found.out.split())
    assert "at worst ±" in words
    assert "Typically (values spread evenly over their bounds) ±" in words
    assert "no interval of values: in 95 % of groups at most" in words


def test_an_answer_says_below_it_what_has_no_interval(people: Path, run: Runner) -> None:
    asked = "SELECT sex, MEDIAN(age) AS m, COUNT(*) AS n, COUNT(*) % 7 AS rest FROM people GROUP BY sex"
    found = run(f'query "{asked}" --policy policy.yaml --epsilon 1')
    words = " ".join(found.out.split())
    assert found.code == 0, found.err
    assert "m: no interval of values: in 95 % of groups" in words
    assert "rest: no interval: computed from noisy numbers that have none" in words


def test_an_error_may_be_named_instead_of_epsilon(people: Path, run: Runner) -> None:
    found = run(f'query "{COUNT}" --policy policy.yaml --error 20 --price --json').json
    assert 0 < float(found["cost"]["epsilon"]) < 0.3
    assert found["expected"][0]["half_width"] <= 20


def test_an_answer_in_a_folder_can_be_verified(people: Path, run: Runner) -> None:
    made = run(f'query "{COUNT}" --policy policy.yaml --epsilon 1 --out answer')
    assert made.code == 0
    assert sorted(path.name for path in Path("answer").iterdir()) == ["certificate.json", "data.csv", "report.html"]
    assert run("verify answer --ledger sqlite:///.incrowd/ledger.sqlite").code == 0
    spent = run("ledger show --ledger sqlite:///.incrowd/ledger.sqlite --json").out
    assert run(f'query "{COUNT}" --policy policy.yaml --epsilon 1/2 --out answer').code == 2
    assert run("ledger show --ledger sqlite:///.incrowd/ledger.sqlite --json").out == spent, "nothing was charged"


def test_intervals_are_not_said_to_hold_as_often_where_noise_chose_what_is_shown(people: Path, run: Runner) -> None:
    asked = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
    whole, chosen = (
        f'query "{asked}{more}" --policy policy.yaml --epsilon 1' for more in ("", " HAVING COUNT(*) > 150")
    )
    assert "True numbers lie in their intervals in 95 of 100 answers." in run(whole).out
    told = " ".join(run(chosen).out.split())
    assert "True numbers lie" not in told
    assert "in fewer of those that were chosen" in told


def test_a_batch_is_one_charge(people: Path, run: Runner) -> None:
    Path("all.sql").write_text(f"{COUNT}; SELECT AVG(age) AS mean FROM people -- both\n;")
    found = run("query --batch all.sql --policy policy.yaml --epsilon 1 --json").json
    assert len(found["answers"]) == 2
    assert found["cost"] == {"epsilon": "1", "delta": "0"}
    shown = run("query --batch all.sql --policy policy.yaml --epsilon 1/2")
    assert "answer 2" in shown.out
    assert "total cost" in shown.out


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_answers_of_a_batch_in_a_folder_can_be_verified(people: Path, run: Runner, form: str) -> None:
    """A question that is asked twice has one file, and a file that was touched is found."""
    Path("all.sql").write_text(f"{COUNT}; SELECT sex, AVG(age) AS mean FROM people GROUP BY sex; {COUNT}")
    line = f"query --batch all.sql --policy policy.yaml --epsilon 1 --out answers --format {form}"
    assert run(line).code == 0
    files = ["certificate.json", f"data.1.{form}", f"data.2.{form}", "report.html"]
    assert sorted(path.name for path in Path("answers").iterdir()) == files
    verify = "verify answers --policy policy.yaml --ledger sqlite:///.incrowd/ledger.sqlite"
    assert run(verify).code == 0, run(verify).out
    assert run(line).code == 2, "the folder is there already"
    first, second = (Path("answers") / name for name in files[1:3])
    first.write_bytes(second.read_bytes())
    assert run(verify).code == 1


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ('query "SELECT age FROM people" --epsilon 1', 1, "value of single rows"),
        ('query "SELECT COUNT(*) FROM peeple" --epsilon 1', 2, "Did you mean 'people'?"),
        ('query "SELEC 1" --epsilon 1', 1, "this is not a query"),
        (f'query "{COUNT}"', 2, "give one of epsilon, error and rho"),
        (f'query "{COUNT}" --epsilon 0', 2, "above 0"),
        (f'query "{COUNT}" --epsilon 9', 1, "3 of the budget of 3 remains"),
        (f'query "{COUNT}" --epsilon 1 --batch x.sql', 2, "give one query"),
        ("query --epsilon 1", 2, "give one query"),
        ("query --epsilon 1 --batch nowhere.sql", 2, "cannot be read"),
        (f'query "{COUNT}" --epsilon 1 --out x --format xml', 2, "csv, tsv or parquet"),
        (f'query "{COUNT}" --epsilon 1 --data nowhere.csv', 2, "does not exist"),
    ],
)
def test_what_cannot_be_answered_says_why(people: Path, run: Runner, line: str, code: int, says: str) -> None:
    found = run(f"{line} --policy policy.yaml")
    assert (found.code, says in found.err) == (code, True), found.err


def test_an_account_that_was_carved_out_pays_by_rho(people: Path, run: Runner) -> None:
    run(f'query "{COUNT}" --policy policy.yaml --epsilon 1/10')
    ledger = "--ledger sqlite:///.incrowd/ledger.sqlite"
    carved = run(f"ledger carve people means --rho 0.02 --delta 1e-7 {ledger} --json")
    assert carved.code == 0
    left = carved.json["left"]
    line = f'query "{COUNT}" --policy policy.yaml --account means --rho 0.01'
    assert run(f"{line} --out answer").code == 0
    assert run(f"verify answer {ledger}").code == 0, run(f"verify answer {ledger}").out
    after = run(f"ledger show {ledger} --json").json["datasets"][0]["left"]
    assert after == left, "the account was paid for when it was carved out"
    assert run('query "SELECT COUNT(*) FROM people" --policy policy.yaml --account means --rho 0.02').code == 1
    assert run(f'query "{COUNT}" --policy policy.yaml --account other --rho 0.01').code == 2


def test_a_classical_answer_says_what_breaks_it(people: Path, run: Runner) -> None:
    path = people / "policy.yaml"
    path.write_text(POLICY.replace("{epsilon: 3, delta: 1e-6}", '{unbounded: "made-up people"}'))
    asked = 'query "SELECT COUNT(*) FROM people WHERE age > 40" --policy policy.yaml --classical'
    found = run(f"{asked} size-control=5")
    assert found.code == 0
    assert "100" in found.out
    assert "tracker" in found.out
    assert run(f"{asked} random-sample=1/2 --json").json["protection"] == "random-sample"
    assert run(f"{asked} size-control=101").code == 1
    assert run(f"{asked} size-control").code == 2
    assert run(f"{asked} audited --epsilon 1").code == 2


def test_nothing_classical_is_answered_where_a_budget_guarantees_more(people: Path, run: Runner) -> None:
    found = run('query "SELECT COUNT(*) FROM people WHERE age > 40" --policy policy.yaml --classical size-control=5')
    assert found.code == 1
    assert "never given beside private ones" in " ".join(found.err.split())


def test_numbers_of_a_capped_table_say_so_wherever_they_are_shown(people: Path, run: Runner) -> None:
    unit = "{name: people, unit: {column: id, max_rows: 2}}"
    capped = POLICY.replace("{name: people}", unit).replace("  sex:", "  id: {role: identifier}\n  sex:")
    (people / "policy.yaml").write_text(capped)
    (people / "people.csv").write_text("id,sex,age\n" + "a,F,30\nb,M,41\na,F,\n" * 100)
    caps = "Numbers are of the capped table: at most 2 rows of each person in people."
    asked = f'query "{COUNT}" --policy policy.yaml --epsilon 1'
    assert "of the capped table" in run(f"{asked} --price").out
    assert run(f"{asked} --json").json["answer"]["note"] == caps
    assert "of the capped table" in run(f"{asked} --out answer").out
    assert caps in Path("answer/report.html").read_text()
    assert run("verify answer/certificate.json").code == 0


def test_declarations_are_told_for_nothing(people: Path, run: Runner) -> None:
    shown = run('query "SHOW TABLES" --policy policy.yaml')
    assert shown.code == 0
    assert "people" in shown.out
    assert "nothing was spent" in shown.out
    told = run('query "DESCRIBE people" --policy policy.yaml --json').json
    assert told["answer"]["columns"][2]["values"] == ["F, M", "0 to 120"]
    assert told["cost"] == {"epsilon": "0", "delta": "0"}
    refused = run('query "SHOW GRANTS" --policy policy.yaml')
    assert refused.code == 1
    assert "SHOW TABLES, DESCRIBE" in refused.err


def test_public_tables_and_empty_answers_cost_nothing(people: Path, run: Runner) -> None:
    (people / "codes.csv").write_text("code,name\n1,Łódź\n2,São Paulo\n")
    public = "{source: codes.csv, public: true, columns: {code: {type: integer}, name: {type: text}}}"
    (people / "policy.yaml").write_text(f"{POLICY}tables:\n  codes: {public}\n")
    read = run('query "SELECT name FROM codes WHERE code = 1" --policy policy.yaml')
    assert (read.code, "Łódź" in read.out, "nothing was spent" in read.out) == (0, True, True)
    assert run('query "SELECT 1 + 1 AS two" --policy policy.yaml --json').json["answer"]["columns"][0]["values"] == [2]
    priced = run('query "EXPLAIN SELECT COUNT(*) FROM codes" --policy policy.yaml').out
    assert "costs   epsilon 0" in priced
    empty = run(f'query "{COUNT} LIMIT 0" --policy policy.yaml --epsilon 1')
    assert "nothing was spent" in empty.out
    left = run(f'query "EXPLAIN {COUNT}" --policy policy.yaml --epsilon 1 --json').json["left"]["people"]
    assert left["epsilon"] == "2"
    assert "give one of epsilon" in run(f'query "{COUNT}" --policy policy.yaml').err
