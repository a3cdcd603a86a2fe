"""The half page for the person who decides: size, rows, guarantee, risk, decisions; from published things alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import incrowd
from incrowd.workflows.report.page import public_report
from tests.policies import PEOPLE, changed, people

ROWS = people(2000, seed=3)


def released(folder: Path, **changes: Any) -> tuple[Any, str]:
    policy = changed(PEOPLE, ledger=f"sqlite:///{folder / 'ledger.sqlite'}", **changes)
    release = incrowd.release(ROWS, policy)
    return release, public_report(release.certificate, release.result)


def short(page: str) -> str:
    return page.split('id="summary"')[1].split("</section>", maxsplit=1)[0]


def test_a_report_begins_with_size_guarantee_risk_and_decisions(tmp_path: Path) -> None:
    release, page = released(tmp_path, dataset__population=100_000)
    text = short(page)
    assert page.index('id="summary"') < page.index('id="label"')
    assert f"{len(release.result):,} rows are published." in text
    assert "one row changes the probability of any result by a factor of at most" in text
    assert "Someone who guesses whether one row is in the data, at even odds, is right at most" in text
    assert "for the declared 100,000 people together" in text
    assert "Publish or not" in text


def test_of_replaced_rows_another_thing_is_guessed(tmp_path: Path) -> None:
    _, page = released(tmp_path, dataset__unit={"adjacency": "replace-one"})
    assert "guesses which of two records one row has, at even odds" in short(page)


def test_the_rows_of_the_summary_are_published_rows(tmp_path: Path) -> None:
    release, page = released(tmp_path)
    table: pa.Table = release.result.to_arrow()
    cells = [part.split("</td>")[0].split(">", 1)[1] for part in short(page).split("<td")[1:]]
    rows = {tuple(str(value) for value in row.values()) for row in table.to_pylist()}
    width = len(table.column_names)
    shown_rows = [tuple(cells[at : at + width]) for at in range(0, len(cells), width)]
    assert len(shown_rows) == 5
    unescaped = {tuple(cell.replace("&lt;", "<").replace("&gt;", ">") for cell in row) for row in shown_rows}
    assert unescaped <= rows


def test_without_an_epsilon_the_summary_says_so_and_names_each_claim_once(tmp_path: Path) -> None:
    release = {"method": "full-domain", "k": 5, "lowest": {"zip": 1}}
    _, page = released(tmp_path, release=release, budget={"unbounded": "for a closed room"})
    assert "It has no ε" in short(page)
    assert "Nothing bounds" in short(page)
    kinds = page.split("No epsilon: ")[1].split(" only")[0]
    assert len(set(kinds.split(" and "))) == len(kinds.split(" and "))


def test_recoding_shows_the_published_level(tmp_path: Path) -> None:
    release = {"method": "full-domain", "k": 5, "lowest": {"zip": 1}}
    out, page = released(tmp_path, release=release, budget={"unbounded": "for a closed room"})
    levels = out.certificate.evidence["levels"]
    table = page.split("Recoding, column by column")[1].split("</table>")[0]
    for name, level in levels.items():
        row = table.split(f">{name}</th>")[1].split("</tr>")[0]
        assert row.split('data-name="level">')[1].lstrip().startswith(str(level))


def test_where_no_row_is_published_the_summary_has_the_published_or_declared_total(tmp_path: Path) -> None:
    histogram = {"method": "private-histogram", "columns": ["sex"], "epsilon": 1}
    release, page = released(tmp_path, release=histogram, budget={"epsilon": 3})
    total = sum(release.result.to_arrow()["count"].to_pylist())
    assert f"no row is. Their total is {total:,}, noise included." in short(page)
    chosen = {"method": "most-common", "columns": ["sex"], "epsilon": 1, "counts": False}
    _, page = released(tmp_path, release=chosen, budget={"epsilon": 3}, dataset__population=70_000)
    assert "about 70,000 people, as declared" in short(page)
    assert "rows are published" not in short(page)
