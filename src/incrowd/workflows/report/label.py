"""Label: who could learn what, in plain words; the first thing a reader sees."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from incrowd.core.certificate import Certificate
from incrowd.core.claims.privacy import Private
from incrowd.core.schema import Role
from incrowd.core.steps.around import OutsideCode, period_of
from incrowd.core.steps.rows import Recode
from incrowd.core.steps.step import walk
from incrowd.core.unit import Adjacency, ExtraRowsRule, Kind, Unit
from incrowd.core.words import chance, counted, listed, short_down
from incrowd.drawing.markup import Description
from incrowd.verifier.judge import statement_of
from incrowd.workflows.bounds.odds import Odds
from incrowd.workflows.plan.warnings import kept_columns

_MANY = 10**6
_ATTACKER = (
    "Suppose someone knows the data of everybody else, the method and all its settings, and can compute without limit."
)


@dataclass(frozen=True)
class ReportAlert:
    """What must be read before everything else."""

    title: str
    text: str


@dataclass(frozen=True)
class LabelLine:
    """What a reader asks, with a short answer and a full one."""

    question: str
    short: str
    full: str


@dataclass(frozen=True)
class Label:
    """A release in plain words; `alerts` come first."""

    odds: Odds
    total: Odds
    alerts: tuple[ReportAlert, ...]
    answers: tuple[LabelLine, ...]

    @property
    def numbers(self) -> str:
        """The ε and the δ of the release."""
        return self.odds.numbers if self.odds.bounded else "no ε"

    @property
    def guesses(self) -> tuple[tuple[str, str], ...]:
        """The highest success rates of a guess: without a release, with this one, with all of them."""
        guesses = (("Guessing without any release", "50 %"), ("With this release, at most", self.odds.guess))
        if not self.odds.bounded:
            return ()
        more = self.total.bounded and self.total.epsilon > self.odds.epsilon
        return (*guesses, ("With all releases so far, at most", self.total.guess)) if more else guesses


def label_of(certificate: Certificate, published: Description) -> Label:
    """Render a certificate for the person who signs it."""
    odds, total = Odds.of(certificate.accounting.spent), Odds.of(certificate.accounting.total)
    answers = (
        *(_bounded(certificate, odds) if odds.bounded else _unbounded(certificate, published)),
        LabelLine("What was published?", published.short, published.full),
        *_periods(certificate, total),
        _history(certificate, total),
    )
    return Label(odds, total, _alerts(certificate, odds, total), answers)


def _alerts(certificate: Certificate, odds: Odds, total: Odds) -> tuple[ReportAlert, ...]:
    code = tuple(
        ReportAlert(f"Code of another distribution: {step.distribution} {step.version}", step.sentence)
        for step in certificate.steps
        if isinstance(step, OutsideCode)
    )
    return (*code, *_about_budget(certificate, odds, total))


def _about_budget(certificate: Certificate, odds: Odds, total: Odds) -> tuple[ReportAlert, ...]:
    reason = certificate.accounting.unbounded
    allowed = f" The data holder allowed this and wrote: “{reason}”." if reason else ""
    if not odds.bounded:
        outside = _outside_classes(certificate)
        kinds = listed(list(dict.fromkeys(claim.kind for claim in reversed(certificate.claims)))) or "no claim"
        open_ = "Nothing bounds what someone with background knowledge can learn about one person from this release."
        return (ReportAlert(f"No epsilon: {kinds} only", f"{open_}{_drafted(certificate)}{allowed}"), *outside)
    if not total.bounded:
        text = (
            "This release has a bound of its own. Another release about the same people has none, so nothing bounds "
            f"what all of them show together.{allowed}"
        )
        return (ReportAlert("No epsilon in total: an earlier release has none", text),)
    return ()


def _outside_classes(certificate: Certificate) -> tuple[ReportAlert, ...]:
    """Name the columns that were published as they are and are not part of any equivalence class."""
    plain = statement_of(certificate).of_role(Role.PLAIN)
    names = kept_columns(certificate.claims, certificate.steps, plain)
    if not names:
        return ()
    text = (
        "These columns were published as they are, and equivalence classes do not cover them. Someone who knows a "
        "person's values there may find their row."
    )
    return (ReportAlert(f"Not covered by equivalence classes: {listed(list(names))}", text),)


def _drafted(certificate: Certificate) -> str:
    drafts = [name for step in walk(certificate.steps) if isinstance(step, Recode) for name in step.drafted]
    if not drafts:
        return ""
    return f" The rules of these columns come from the data, which rules out any stronger claim: {', '.join(drafts)}."


def _bounded(certificate: Certificate, odds: Odds) -> tuple[LabelLine, ...]:
    unit = certificate.guarantee.unit
    if unit.kind.of_edges:
        return _bounded_edge(certificate, odds)
    if unit.adjacency is Adjacency.ADD_REMOVE:
        who = f"{_ATTACKER} You are in the data with a chance of 1 in 2. From this release they guess whether you are."
        question, other = "Can anyone tell that you are in it?", "without your data"
        pair = "With you and without you"
    else:
        who = (
            f"{_ATTACKER} They know that your record is one of two, equally likely. From this release they guess which."
        )
        instead = next((claim.instead for claim in certificate.claims if isinstance(claim, Private)), Private.instead)
        question, other = "Can anyone tell your record?", instead
        pair = "With your record and with another"
    right = f"They are right at most {odds.guess} of the time; guessing without the release is right 50 % of the time."
    many = chance(min(Decimal(1), odds.delta * _MANY))
    return (
        _protected(certificate, bounded=True),
        LabelLine(question, f"A guess is right at most {odds.guess} of the time", f"{who} {right}"),
        LabelLine(
            pair,
            f"Odds change by a factor of {odds.times} at most",
            f"Any conclusion from this release, about you or about anything else, has at most {odds.times} times the "
            f"probability that it has {other}, plus δ. What it says about people in general depends on no person by "
            "more than that.",
        ),
        LabelLine(
            "Failure probability δ",
            f"{odds.failure[:1].upper()}{odds.failure[1:]}",
            f"That is for each person. For a million people together it is {many}.",
        ),
    )


def _bounded_edge(certificate: Certificate, odds: Odds) -> tuple[LabelLine, ...]:
    one = certificate.guarantee.unit.kind is Kind.RELATION
    guessed, so = ("One edge is there", "it is") if one else ("Two people are connected", "they are")
    who = (
        "Suppose someone knows all nodes, all other edges, the method and all its settings, and can compute without "
        f"limit. {guessed} with a chance of 1 in 2. From this release they guess whether {so}."
    )
    right = f"They are right at most {odds.guess} of the time; guessing without the release is right 50 % of the time."
    return (
        _protected(certificate, bounded=True),
        LabelLine(
            "Can anyone tell that an edge is there?" if one else "Can anyone tell that two people are connected?",
            f"A guess is right at most {odds.guess} of the time",
            f"{who} {right}",
        ),
        LabelLine(
            "With the edge and without it",
            f"Odds change by a factor of {odds.times} at most",
            f"Any conclusion from this release has at most {odds.times} times the probability that it has without the "
            "edge, plus δ. A person with many edges can lose as much for each of them.",
        ),
        LabelLine("Failure probability δ", f"{odds.failure[:1].upper()}{odds.failure[1:]}", "That is for each edge."),
    )


def _unbounded(certificate: Certificate, published: Description) -> tuple[LabelLine, ...]:
    return (
        _protected(certificate, bounded=False),
        LabelLine(
            "Can anyone tell that you are in it?",
            "No bound",
            f"Someone who knows how a person is described in the published columns finds {published.match}, or none. "
            "Someone who knows more than that, or who has another table about the same people, may single out one "
            "person.",
        ),
        LabelLine(
            "With you and without you",
            "No bound",
            "What can be concluded from this release with your data may be impossible to conclude without it.",
        ),
        LabelLine("Failure probability δ", "None stated", "Without an epsilon there is no guarantee that could fail."),
    )


def _protected(certificate: Certificate, *, bounded: bool) -> LabelLine:
    unit = certificate.guarantee.unit
    if unit.kind is Kind.PERSON:
        reads = next((claim.reads for claim in certificate.claims if claim.reads is not None), None)
        series = "in each period, " if any(step.whole_series for step in certificate.steps) else ""
        short, full = "Each person", f"The column “{unit.column}” identifies people; {series}{reads or _rows(unit)}."
    elif unit.kind is Kind.PERSON_PERIOD:
        short = "Each person in one period"
        full = f"The column “{unit.column}” identifies people; in each period, {_rows(unit)}."
    elif unit.kind is Kind.ROW:
        short, full = "Each row", "Each row is one person: nobody may have more than one row in the table."
    else:
        short, full = f"Each {unit.kind}", f"Everything is stated for {unit}."
    what = (
        "Protected: whether two nodes are connected. Not protected: nodes, their number and their columns."
        if unit.kind is Kind.EDGE
        else "Protected: whether one edge exists. Other edges of the same two nodes are protected one by one and may "
        "reveal it. Not protected: nodes, their number and their columns."
        if unit.kind is Kind.RELATION
        else "Protected: whether someone has rows in this period, and what they say. For somebody in several periods "
        "the losses add up."
        if unit.kind is Kind.PERSON_PERIOD and unit.adjacency is Adjacency.ADD_REMOVE
        else "Protected: whether someone is in the data, and so everything about that person."
        if unit.adjacency is Adjacency.ADD_REMOVE
        else "Protected: what someone's record says. Not protected: how many people are in the data."
    )
    return LabelLine(
        "Who is protected?" if bounded else "Who is counted?",
        short,
        f"{full} {what}" if bounded else f"{full} No single one of them is guaranteed anything.",
    )


def _rows(unit: Unit) -> str:
    few = "one row" if unit.max_rows == 1 else f"{unit.max_rows} rows"
    if unit.more is ExtraRowsRule.DROP:
        return f"people with more than {few} are suppressed"
    if unit.more is ExtraRowsRule.REFUSE:
        return f"nobody has more than {few}: the source was checked, and publication shows that it passed"
    return "one row of each is used" if unit.max_rows == 1 else f"at most {few} of each are used"


def _periods(certificate: Certificate, total: Odds) -> tuple[LabelLine, ...]:
    """Say what adds up for somebody in all periods charged so far, also lost ones; that number is public."""
    account, unit = certificate.accounting.period, certificate.guarantee.unit
    if account is None:
        return ()
    everywhere = f"For somebody in all {counted(account.published, 'period')} charged so far, with everything else "
    whole = f"{everywhere}charged to this dataset: {total.numbers if total.bounded else 'no bound'}."
    spent = Odds.of(account.spent)
    here = spent.numbers if spent.bounded else "no bound"
    if account.releases is not None:
        planned = counted(account.releases, "release")
        short = f"{planned} charged together"
        step = period_of(certificate.steps)
        most = None if step is None else step.participations
        who = "every one" if most is None else f"{counted(most, 'period')}, the most that a person takes part in"
        own = f"All {planned} together, for somebody in {who}: {Odds.of(certificate.accounting.spent).numbers}."
    elif unit.kind is Kind.PERSON_PERIOD:
        short = f"{account.label}: {here}"
        own = (
            f"Nothing bounds what can be concluded about one person's rows of {account.label}."
            if not spent.bounded
            else f"Adding or removing one person's rows of {account.label}, in every version of the file, changes the "
            f"probability of any result by a factor e^ε at most, plus δ: {spent.numbers}. For somebody in several "
            "periods these add up."
        )
    else:
        short = f"{account.label}: {here}"
        own = f"What was charged for {account.label} and for all periods: {here}. Periods add up."
    return (LabelLine("Somebody in several periods", short, f"{own} {whole}"),)


def _history(certificate: Certificate, total: Odds) -> LabelLine:
    releases, left = certificate.accounting.releases, certificate.accounting.left
    rest = ""
    if left is not None:
        amounts = Odds.of(left)
        rest = f" Remaining for later releases: ε {short_down(amounts.epsilon)}, δ {short_down(amounts.delta)}."
    if not total.bounded:
        return LabelLine("All releases together", "No bound", f"{counted(releases, 'release')} so far.{rest}")
    if releases == 1:
        return LabelLine(
            "All releases together", "This is the first", f"No other release is charged to this dataset.{rest}"
        )
    return LabelLine(
        "All releases together",
        f"A guess is right at most {total.guess} of the time",
        f"{counted(releases, 'release')} so far, this one included: the odds change by a factor of at most "
        f"{total.times}, and the failure probability is {total.failure} ({total.numbers}).{rest}",
    )
