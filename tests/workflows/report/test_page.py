"""The page says everything the certificate says, first what matters most, and cannot be made to do anything else."""

from __future__ import annotations

import hashlib
import html
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest
from markupsafe import escape

from incrowd.core.certificate import (
    LIMITS,
    Amounts,
    Certificate,
    ColumnFact,
    Columns,
    Dataset,
    File,
    LedgerPlace,
    Signature,
)
from incrowd.core.claims.claim import Precondition, Status
from incrowd.core.domain import Provenance
from incrowd.core.hierarchy.hierarchy import HierarchyRule, RuleKind
from incrowd.core.steps.rows import Recode
from incrowd.core.terms import Assumption, Exposure, Theorem
from incrowd.core.unit import Adjacency, Unit
from incrowd.drawing.glyphs import CHANGES
from incrowd.drawing.picture import Picture
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.registry import check_of, names
from incrowd.workflows.report.label import Label, label_of
from incrowd.workflows.report.page import describe, internal_report, public_report, summary_html
from tests.certificates import (
    PERSON,
    ROWS_OF_PEOPLE,
    UNSAMPLED,
    accounting,
    certificate,
    counted,
    drafted,
    policy,
    shown,
)

ALL: dict[str, Callable[[], Policy]] = {
    "rows": policy,
    "people": lambda: policy(**PERSON),
    "people with rows": lambda: policy(**ROWS_OF_PEOPLE),
    "unsampled": lambda: policy(**UNSAMPLED),
    "drafted": drafted,
    "replaced": lambda: policy(dataset={"name": "d", "unit": {"adjacency": "replace-one"}}),
}
VOID = {"meta", "br", "hr"}


@pytest.fixture(params=ALL)
def certified(request: pytest.FixtureRequest) -> Certificate:
    return certificate(ALL[request.param]())


class Page(HTMLParser):
    """A page as its elements in order, each with its attributes and the elements around it; and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None], tuple[str, ...]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == [], "an element is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"{tag} closes what it did not open"

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.texts))


def label(certified: Certificate) -> Label:
    return label_of(certified, describe(certified))


def plain(text: str) -> str:
    """What a page makes of a text: raised exponents have no caret."""
    return re.sub(r"\s+", " ", text)


def test_the_page_is_well_formed_and_every_link_leads_somewhere(certified: Certificate) -> None:
    page = Page(public_report(certified))
    ids = Counter(attributes["id"] for _, attributes, _ in page.elements if "id" in attributes)
    assert max(ids.values()) == 1
    links = [attributes["href"] for tag, attributes, _ in page.elements if tag == "a"]
    assert len(links) > 8
    for link in links:
        assert link is not None
        assert link.startswith("#")
        assert link[1:] in ids


def test_nothing_is_loaded_and_no_script_runs(certified: Certificate) -> None:
    text = public_report(certified, shown(policy()))
    page = Page(text)
    tags = {tag for tag, _, _ in page.elements}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "form", "base", "image", "use"}
    for _, attributes, _ in page.elements:
        assert not set(attributes) & {"src", "srcset", "data", "action", "xlink:href", "background"}
        assert not any(name.startswith("on") for name in attributes)
    assert not re.search(r"url\(|@import|https?:", text)
    assert "default-src 'none'" in html.unescape(text)


def test_every_claim_condition_and_gap_is_on_the_page(certified: Certificate) -> None:
    text = Page(public_report(certified)).text.lower()
    for claim in certified.claims:
        assert claim.kind.lower() in text
        assert plain(claim.source).lower() in text
        for condition in claim.preconditions:
            assert condition.text.lower() in text
        for gap in claim.not_protected:
            assert str(gap).lower() in text
    for limit in LIMITS:
        assert limit.lower() in text
    for output in certified.outputs:
        assert output.sha256 in text
    assert certified.ledger.hash in text
    assert certified.policy_hash in text
    assert "incrowd verify certificate.json data.parquet" in text


def test_how_a_condition_is_known_is_said_in_words() -> None:
    text = Page(public_report(certificate())).text
    assert "✓ proved" in text
    assert "✓ checked" in text
    assert "○ assumed" in text


def test_whoever_signs_gets_a_box_for_every_assumption() -> None:
    certified = certificate()
    signing = public_report(certified).split('id="signing"')[1].split("</ul>")[0]
    assumed = {c.text for claim in certified.claims for c in claim.preconditions if c.status == "assumed"}
    assert signing.count("<li>") == len(assumed) > 3


def test_headings_skip_no_level(certified: Certificate) -> None:
    levels = [int(tag[1]) for tag, _, _ in Page(public_report(certified)).elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_picture_is_named_or_hidden_from_screen_readers(certified: Certificate) -> None:
    page = Page(public_report(certified, shown(policy())))
    pictures = [
        (attributes, around) for tag, attributes, around in page.elements if tag == "svg" and "svg" not in around
    ]
    assert len(pictures) > 5
    for attributes, around in pictures:
        hidden = attributes.get("aria-hidden") == "true" or "span" in around
        assert hidden or (attributes.get("role") == "img" and len(attributes.get("aria-label") or "") > 20)


def test_every_chart_has_its_numbers_in_a_table() -> None:
    page = public_report(certificate(), shown(policy()))
    assert page.count("<figure>") == 2
    for figure in page.split("<figure>")[1:]:
        assert "<table" in figure.split("</figure>")[0]


def test_every_table_has_a_caption_and_heads(certified: Certificate) -> None:
    text = public_report(certified)
    tables = text.split("<table")[1:]
    assert len(tables) > 5
    for table in tables:
        assert "<caption>" in table
        assert 'scope="col"' in table
        assert 'scope="row"' in table


@pytest.mark.parametrize(
    ("name", "title"),
    [("drafted", "No epsilon: k-anonymity only"), ("unsampled", "No epsilon: k-anonymity and crowd-blending only")],
)
def test_no_epsilon_is_said_before_anything_else(name: str, title: str) -> None:
    certified = certificate(ALL[name]())
    page = Page(public_report(certified))
    assert page.text.index(title) < page.text.index("Who could learn what")
    assert "the same table was published in 2019" in page.text
    assert "alert" in public_report(certified).split("</h1>")[1].split("<h2")[0]
    assert title in summary_html(certified)


def test_what_was_drafted_from_rows_is_named() -> None:
    text = Page(public_report(certificate(drafted()))).text
    assert "which rules out any stronger claim: diagnosis" in text
    assert "⚠ drafted from rows" in text


@pytest.mark.parametrize("name", ["drafted", "unsampled"])
def test_without_an_epsilon_nothing_is_guaranteed_about_one_person(name: str) -> None:
    certified = certificate(ALL[name]())
    text = Page(public_report(certified, shown(ALL[name]()))).text
    assert "Hidden is" not in text
    assert "right at most" not in text
    assert "not bounded: this release has no epsilon" in text
    assert "Odds change" not in summary_html(certified)


def test_an_earlier_release_without_an_epsilon_raises_the_alarm() -> None:
    total = Amounts("Infinity", "0.00000001")
    book = accounting("0.5", Fraction(1, 10**8), total=total, releases=2, unbounded="an old table")
    text = Page(public_report(certificate(accounting=book))).text
    assert text.index("No epsilon in total") < text.index("Who could learn what")
    assert "an old table" in text
    assert "62.3" in text


def test_a_bounded_release_raises_no_alarm() -> None:
    assert 'class="alarm"' not in public_report(certificate())
    assert label(certificate()).alerts == ()


def test_the_label_says_the_odds() -> None:
    book = accounting("0.5", Fraction(1, 10**8))
    answers = {answer.question: answer for answer in label(certificate(accounting=book)).answers}
    assert "62.3 %" in answers["Can anyone tell that you are in it?"].short
    assert "1.65" in answers["With you and without you"].short
    assert answers["Failure probability δ"].short == "At most 1 in 100 million"
    assert "at most 1 in 100." in answers["Failure probability δ"].full
    assert answers["What was published?"].short == "Crowds of 10 or more"
    assert answers["All releases together"].short == "This is the first"


def test_several_releases_are_added_up() -> None:
    book = accounting("0.5", Fraction(1, 10**8), total=Amounts("1.5", "0.00000003"), releases=3)
    answer = label(certificate(accounting=book)).answers[-1]
    assert answer.short == "A guess is right at most 81.8 % of the time"
    assert answer.full.startswith("3 releases so far")
    assert "81.8" in Page(public_report(certificate(accounting=book))).text


def test_a_replaced_record_is_explained_as_one_of_two() -> None:
    answers = label(certificate(ALL["replaced"]())).answers
    assert "your record is one of two" in answers[1].full
    assert "how many people are in the data" in answers[0].full
    assert answers[2].question == "With your record and with another"
    text = " ".join(Page(public_report(certificate(ALL["replaced"]()))).text.split())
    assert "it moves the odds between the two by a factor of" in text
    assert "whether you are in the data" not in text


def test_odds_between_two_records_move_by_the_factor_twice_where_people_are_added_or_removed() -> None:
    text = " ".join(Page(public_report(certificate())).text.split())
    assert "it moves the odds that you are in it by a factor of" in text
    assert "They are (2ε, (1 + e" in text.replace("e2ε", "e 2ε")
    assert "Change the data of any one person" not in text


def test_rows_of_one_person_are_said_to_share_a_crowd() -> None:
    answers = label(certificate(ALL["people with rows"]())).answers
    assert "at most 3 rows of each are used" in answers[0].full
    assert "Rows of one person may be among them." in answers[-2].full


def test_an_empty_release_says_so() -> None:
    certified = certificate(policy(), counted(policy()).at_least(10**6))
    page = public_report(certified, shown(policy(), 10**6))
    assert "the published table is empty" in Page(page).text
    assert "Histogram" not in page


def test_spent_is_rounded_up_and_left_is_rounded_down() -> None:
    book = accounting(
        "0.99965964822877140250",
        Fraction(1, 10**8),
        total=Amounts("1.23456789012345", "0.0000000212345678"),
        left=Amounts("1.76543210987655", "0.0000000787654321"),
        releases=2,
    )
    text = Page(public_report(certificate(accounting=book))).text
    for words in ("0.99966", "1.23457", "2.12346e-8", "1.76543", "7.87654e-8"):
        assert words in text
    assert "1.76544" not in text


def test_hostile_texts_stay_texts() -> None:
    hostile = "<img src=x onerror=alert(1)>\"'&</style><script>alert(2)</script>"
    found = certificate()
    recode = next(step for step in found.steps if isinstance(step, Recode))
    rule = HierarchyRule(RuleKind.CUTS, ((hostile,),))
    poisoned = replace(recode.columns[0], column=hostile, rule=rule, provenance=Provenance(True, hostile), fill=hostile)
    open_ = Exposure.read(hostile)
    strange = (Precondition(Assumption.read(hostile), Status.ASSUMED),)
    certified = replace(
        found,
        id=hostile,
        created=hostile,
        tool=hostile,
        policy_hash=hostile,
        dataset=Dataset(hostile, hostile, hostile, hostile, hostile, hostile, (hostile,)),
        ledger=LedgerPlace(hostile, 1, hostile),
        schema=Columns((ColumnFact(hostile, hostile, hostile),), (hostile,)),
        evidence={
            **found.evidence,
        },
        accounting=replace(found.accounting, unbounded=hostile),
        steps=(Recode((poisoned,)),),
        claims=tuple(
            replace(claim, theorem=(Theorem.read(hostile),), preconditions=strange, not_protected=(open_,))
            for claim in found.claims
        ),
        outputs=(File(hostile, hostile, 1),),
        approvals=({hostile: hostile},),
    )
    page = public_report(certified)
    tags = {tag for tag, _, _ in Page(page).elements}
    assert "img" not in tags
    assert "script" not in tags
    assert page.count(escape(hostile)) > 20
    assert "<img" not in summary_html(certified)


@pytest.mark.parametrize(
    "change",
    [
        {"accounting": accounting("x", Fraction(0))},
        {"accounting": accounting("1", Fraction(1, 100), left=Amounts("1", "-1"))},
        {"evidence": {"rows": "many"}},
        {"evidence": {}},
        {"evidence": {"rows": 5, "prosecutor": "often"}},
    ],
)
def test_a_damaged_certificate_is_refused_with_a_reason(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        public_report(certificate(**change))


def test_every_step_is_told_in_its_own_words(certified: Certificate) -> None:
    text = Page(public_report(certified)).text
    for step in certified.steps:
        assert step.title in text
        assert step.sentence in text


def test_every_step_has_a_glyph_that_can_be_drawn() -> None:
    known = [*CHANGES, None]
    assert all(step.glyph in known for name in names() for step in check_of(name).steps)


def test_a_method_without_a_picture_is_told_by_its_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incrowd.workflows.report.page.picture_of", lambda name: Picture())
    certified = certificate(evidence={"rows": 1234})
    text = Page(public_report(certified, shown(policy()))).text
    assert "See the claims" in text
    assert "Rows 1,234" in text
    assert "Histogram" not in text


def test_approvals_are_shown() -> None:
    certified = certificate(approvals=({"who": "the disclosure board", "on": "2025-11-20"},))
    assert "who: the disclosure board; on: 2025-11-20" in Page(public_report(certified)).text


def test_a_page_hangs_on_nothing_that_comes_after_it() -> None:
    bare = certificate()
    report = File("report.html", "99" * 32, 77)
    signed = replace(bare, outputs=(*bare.outputs, report), signature=Signature("Ed25519", "aa" * 32, "bb" * 64))
    page = public_report(signed, shown(policy()))
    assert page == public_report(bare, shown(policy()))
    assert signed.digest() not in page
    assert bare.digest() not in page
    assert bare.id in page


def test_a_page_made_in_another_process_is_the_same() -> None:
    made = "from tests.certificates import *; from incrowd.workflows.report.page import public_report as p; "
    made += "import hashlib; print(hashlib.sha256(p(certificate(), shown(policy())).encode()).hexdigest())"
    texts = {
        subprocess.run(
            [sys.executable, "-c", made],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert texts == {hashlib.sha256(public_report(certificate(), shown(policy())).encode()).hexdigest()}


def test_only_the_internal_report_is_marked_internal() -> None:
    released = shown(policy(), 50)
    assert "INTERNAL" not in public_report(certificate(), released)
    page = internal_report(certificate(), released)
    assert page.index("INTERNAL") < page.index("<body")
    assert Page(page).text.count("Do not publish") == 1


def test_the_unit_of_a_graph_is_shown_in_its_own_words() -> None:
    from incrowd.core.unit import Kind

    edge = replace(certificate().guarantee, unit=Unit(Kind.EDGE, Adjacency.ADD_REMOVE))
    assert "Each edge" in Page(public_report(certificate(guarantee=edge))).text


def test_a_summary_brings_its_own_style_and_no_script() -> None:
    summary = summary_html(certificate())
    assert "<style" not in summary
    assert "<script" not in summary
    assert "ε ≤ 0.9997" in summary
    assert "Each row" in summary


def test_the_numbers_of_the_page_are_those_of_the_accounting() -> None:
    certified = certificate()
    spent = Decimal(certified.accounting.spent.epsilon)
    shown = re.search(r"ε ≤ ([\d.]+), δ", Page(public_report(certified)).text)
    assert shown is not None
    assert spent <= Decimal(shown[1]) <= spent * Decimal("1.001")


@pytest.mark.parametrize("internal", [False, True])
def test_bounds_by_weaker_formulas_stand_apart_from_the_claims(*, internal: bool) -> None:
    made = certificate(policy())
    page = internal_report(made, None) if internal else public_report(made)
    claims, apart, bounds = page.partition("<h3>Other published bounds</h3>")
    restated = {claim.kind for claim in made.claims if claim.restates}
    assert apart
    assert restated == {"approximate differential privacy, as published", "f-smooth differential privacy"}
    assert not any(f"</b>{kind}</th>" in claims for kind in restated)
    assert all(f"</b>{kind}</th>" in bounds for kind in restated)
    assert all(f"</b>{claim.kind}</th>" in claims for claim in made.claims if claim.kind not in restated)
