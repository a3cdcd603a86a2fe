"""Label: who could learn what, in plain words; the first thing a reader sees."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from incrowd.core.certificate import Certificate
from incrowd.core.loss import Syntactic, walk
from incrowd.core.unit import Adjacency, Kind
from incrowd.core.words import chance, counted, listed, short_down
from incrowd.workflows.report.odds import Odds

_MANY = 10**6
_ATTACKER = (
    "Suppose someone knows the data of everybody else, the method and all its settings, and can compute without limit."
)


@dataclass(frozen=True)
class Alarm:
    """What must be read before everything else."""

    title: str
    text: str


@dataclass(frozen=True)
class Answer:
    """A question a person asks, the answer in a few words, and the same in full."""

    question: str
    short: str
    full: str


@dataclass(frozen=True)
class Label:
    """A release in plain words; `alarms` come first."""

    odds: Odds
    total: Odds
    alarms: tuple[Alarm, ...]
    answers: tuple[Answer, ...]


def label_of(certificate: Certificate) -> Label:
    """Return what the certificate says, in the words of the person who signs."""
    odds, total = Odds.of(certificate.accounting["spent"]), Odds.of(certificate.accounting["total"])
    answers = _bounded(certificate, odds) if odds.bounded else _unbounded(certificate)
    return Label(
        odds, total, _alarms(certificate, odds, total), (*answers, _crowds(certificate), _history(certificate, total))
    )


def crowd_size(certificate: Certificate) -> int | None:
    """Return the k of the claim that every published tuple occurs at least k times, if it is made."""
    sizes = [claim.parameters["k"] for claim in certificate.claims if claim.kind == "k-anonymity"]
    return int(sizes[0]) if sizes else None


def _alarms(certificate: Certificate, odds: Odds, total: Odds) -> tuple[Alarm, ...]:
    reason = certificate.accounting.get("unbounded")
    allowed = f" The owner of the data let this pass, and wrote: “{reason}”." if reason else ""
    if not odds.bounded:
        kinds = listed([claim.kind for claim in reversed(certificate.claims)]) or "no claim"
        said = "Nothing bounds what someone with other knowledge can learn about one person from this release."
        return (Alarm(f"No epsilon: {kinds} only", f"{said}{_drafted(certificate)}{allowed}"),)
    if not total.bounded:
        text = (
            "This release has a bound of its own. Another release about the same people has none, so nothing bounds "
            f"what all of them show together.{allowed}"
        )
        return (Alarm("No epsilon in total: an earlier release has none", text),)
    return ()


def _drafted(certificate: Certificate) -> str:
    drafts = [
        value
        for part in walk(certificate.guarantee.loss)
        if isinstance(part, Syntactic)
        for name, value in part.parameters
        if name == "drafted from rows"
    ]
    if not drafts:
        return ""
    return f" Rules for these columns were drafted from the rows, which voids any stronger claim: {', '.join(drafts)}."


def _bounded(certificate: Certificate, odds: Odds) -> tuple[Answer, ...]:
    unit = certificate.guarantee.unit
    if unit.adjacency is Adjacency.ADD_REMOVE:
        who = f"{_ATTACKER} You are in the data with a chance of 1 in 2. From this release they guess whether you are."
        question, more = "Can anyone tell that you are in it?", "with your data as without it"
    else:
        who = (
            f"{_ATTACKER} They know that your record is one of two, each as likely. From this release they guess which."
        )
        question, more = "Can anyone tell your record?", "with your record as with any other in its place"
    right = f"They are right at most {odds.guess} of the time; blind guessing is right 50 % of the time."
    many = chance(min(Decimal(1), odds.delta * _MANY))
    return (
        _protected(certificate, bounded=True),
        Answer(question, f"A guess is right at most {odds.guess} of the time", f"{who} {right}"),
        Answer(
            "With you and without you",
            f"Odds change by a factor of {odds.times} at most",
            f"Any conclusion drawn from this release, about you or about anything else, is at most {odds.times} times "
            f"as likely {more}, apart from the chance below. What it says about people in general hangs on no "
            "one person more than that.",
        ),
        Answer(
            "Chance that this fails",
            f"{odds.failure[:1].upper()}{odds.failure[1:]}",
            f"That is for each person. The chance that it fails for anyone among a million people is {many}.",
        ),
    )


def _unbounded(certificate: Certificate) -> tuple[Answer, ...]:
    size = crowd_size(certificate)
    equal = "rows equal to the one they look for" if size is None else f"at least {size} equal rows"
    equal = "the count of that person's bin" if "bins" in certificate.evidence else equal
    return (
        _protected(certificate, bounded=False),
        Answer(
            "Can anyone tell that you are in it?",
            "No bound",
            f"Someone who knows how a person is described in the published columns finds {equal}, or none. Someone who "
            "knows more than that, or who holds another table about the same people, may single one person out.",
        ),
        Answer(
            "With you and without you",
            "No bound",
            "What can be concluded from this release with your data may be impossible to conclude without it.",
        ),
        Answer("Chance that this fails", "Not known", "Without an epsilon there is no promise that could fail."),
    )


def _protected(certificate: Certificate, *, bounded: bool) -> Answer:
    unit = certificate.guarantee.unit
    if unit.kind is Kind.PERSON:
        rows = "one row" if unit.max_rows == 1 else f"at most {unit.max_rows} rows"
        short, full = "Each person", f"People are told apart by the column “{unit.column}”; {rows} of each take part."
    elif unit.kind is Kind.ROW:
        short, full = "Each row", "A row stands for a person: nobody may have more than one row in the table."
    else:
        short, full = f"Each {unit.kind}", f"Everything is stated for {unit}."
    what = (
        "Hidden is whether someone takes part, and with that everything about that person."
        if unit.adjacency is Adjacency.ADD_REMOVE
        else "Hidden is what someone's record says; how many take part may be known."
    )
    return Answer(
        "Who is protected?" if bounded else "Who is counted?",
        short,
        f"{full} {what}" if bounded else f"{full} No single one is promised anything.",
    )


def _crowds(certificate: Certificate) -> Answer:
    size, rows = crowd_size(certificate), certificate.evidence.get("rows")
    if rows == 0:
        return Answer("What was published?", "No row", "Every row was suppressed: the published table is empty.")
    if "cells with points" in certificate.evidence:
        told = f"The published table has {counted(int(rows or 0), 'point')}, made anew from the counts of cells."
        return Answer("What was published?", "Synthetic points", f"{told} None of them is anyone's row.")
    if "groups" in certificate.evidence:
        groups = counted(int(certificate.evidence["groups"]), "group")
        return Answer("What was published?", "Noisy numbers", f"Aggregates of {groups}, each with noise; nobody's row.")
    if "bins" in certificate.evidence or "ranks" in certificate.evidence:
        return _bins(certificate)
    if size is None:
        return _items(certificate)
    several = certificate.guarantee.unit.max_rows > 1
    told = " Rows of one person may be among them." if several else ""
    where = "table has" if "tables" not in certificate.evidence else "tables have together"
    told += "" if rows is None else f" The published {where} {counted(int(rows), 'row')}."
    return Answer(
        "What was published?",
        f"Crowds of {size} or more",
        f"Each combination of values{_quasi(certificate)} that was published occurs at least {size} times.{told}",
    )


def _items(certificate: Certificate) -> Answer:
    """Return what a table with a set of items in each row holds; else that nothing is said about crowds."""
    told = [claim.parameters for claim in certificate.claims if claim.kind == "k^m-anonymity"]
    if not told:
        return Answer("What was published?", "See the claims", "No claim is made about the size of crowds.")
    rows, alone = certificate.evidence.get("rows", 0), certificate.evidence.get("unique rows", 0)
    full = (
        f"The published table has {counted(int(rows), 'row')} with a set of items each. Every combination of up to "
        f"{told[0].get('m')} items that occurs, occurs in {told[0].get('k')} rows or more. Rows like no other: "
        f"{int(alone):,}."
    )
    return Answer("What was published?", "Rows with sets of items", full)


def _bins(certificate: Certificate) -> Answer:
    """Return what a table of counts, or of the most common bins, holds."""
    ranks, bins = certificate.evidence.get("ranks"), certificate.evidence.get("bins", 0)
    if ranks is not None:
        return Answer("What was published?", f"The {counted(ranks, 'most common bin')}", "No row is published.")
    steps = {str(step.get("step")): step for step in certificate.chain}
    told = "Every one of them carries noise."
    if "suppress counts" in steps:
        told = f"Counts of {steps['suppress counts'].get('k')} or more are exact, smaller ones are 0 or left out."
    elif "noise when small" in steps:
        told = f"Counts of {steps['noise when small'].get('k')} or more are exact, smaller ones carry noise."
    full = f"How many rows there are in each of {counted(int(bins), 'bin')}. {told} No row is published."
    return Answer("What was published?", "Counts", full)


def _quasi(certificate: Certificate) -> str:
    """Return the words for crowds that agree in some of the columns only."""
    counted_over = [claim.parameters.get("columns") for claim in certificate.claims if claim.kind == "k-anonymity"]
    over_all = not counted_over or list(counted_over[0] or ()) == list(certificate.schema.get("released", ()))
    return "" if over_all else " in the quasi-identifiers"


def _history(certificate: Certificate, total: Odds) -> Answer:
    releases, left = int(certificate.accounting.get("releases") or 1), certificate.accounting.get("left")
    rest = ""
    if left is not None:
        amounts = Odds.of(left)
        rest = f" Left for later releases: ε {short_down(amounts.epsilon)}, δ {short_down(amounts.delta)}."
    if not total.bounded:
        return Answer("All releases together", "No bound", f"{counted(releases, 'release')} so far.{rest}")
    if releases == 1:
        return Answer(
            "All releases together", "This is the first", f"No other release is charged to this dataset.{rest}"
        )
    return Answer(
        "All releases together",
        f"A guess is right at most {total.guess} of the time",
        f"{counted(releases, 'release')} so far, this one included: the odds change by a factor of {total.times} at "
        f"most, the chance of failure is {total.failure} ({total.numbers}).{rest}",
    )
