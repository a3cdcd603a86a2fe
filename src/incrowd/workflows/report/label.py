"""Label: who could learn what, in plain words; the first thing a reader sees."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from incrowd.core.certificate import Certificate
from incrowd.core.schema import Role
from incrowd.core.steps.around import OutsideCode
from incrowd.core.steps.rows import Recode
from incrowd.core.steps.step import walk
from incrowd.core.unit import Adjacency, ExtraRowsRule, Kind, Unit
from incrowd.core.words import chance, counted, listed, short_down
from incrowd.drawing.markup import Description
from incrowd.verifier.judge import statement_of
from incrowd.workflows.bounds.odds import Odds
from incrowd.workflows.plan.kept_columns import kept_columns

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
    """A question a person asks, the answer in a few words, and the same in full."""

    question: str
    short: str
    full: str


@dataclass(frozen=True)
class Label:
    """A release in plain words; `alarms` come first."""

    odds: Odds
    total: Odds
    alarms: tuple[ReportAlert, ...]
    answers: tuple[LabelLine, ...]

    @property
    def numbers(self) -> str:
        """The ε and the δ of the release."""
        return self.odds.numbers if self.odds.bounded else "no ε"

    @property
    def guesses(self) -> tuple[tuple[str, str], ...]:
        """How often a guess is right at most: a blind one, with this release, with all releases."""
        guesses = (("Guessing blindly", "50 %"), ("With this release, at most", self.odds.guess))
        if not self.odds.bounded:
            return ()
        more = self.total.bounded and self.total.epsilon > self.odds.epsilon
        return (*guesses, ("With all releases so far, at most", self.total.guess)) if more else guesses


def label_of(certificate: Certificate, published: Description) -> Label:
    """Return what the certificate says, in the words of the person who signs."""
    odds, total = Odds.of(certificate.accounting.spent), Odds.of(certificate.accounting.total)
    answers = (
        *(_bounded(certificate.guarantee.unit, odds) if odds.bounded else _unbounded(certificate, published)),
        LabelLine("What was published?", published.short, published.full),
        _history(certificate, total),
    )
    return Label(odds, total, _alarms(certificate, odds, total), answers)


def _alarms(certificate: Certificate, odds: Odds, total: Odds) -> tuple[ReportAlert, ...]:
    code = tuple(
        ReportAlert(f"Code of another distribution: {step.distribution} {step.version}", step.sentence)
        for step in certificate.steps
        if isinstance(step, OutsideCode)
    )
    return (*code, *_about_budget(certificate, odds, total))


def _about_budget(certificate: Certificate, odds: Odds, total: Odds) -> tuple[ReportAlert, ...]:
    reason = certificate.accounting.unbounded
    allowed = f" The owner of the data let this pass, and wrote: “{reason}”." if reason else ""
    if not odds.bounded:
        kept = _kept(certificate)
        kinds = listed([claim.kind for claim in reversed(certificate.claims)]) or "no claim"
        said = "Nothing bounds what someone with other knowledge can learn about one person from this release."
        return (ReportAlert(f"No epsilon: {kinds} only", f"{said}{_drafted(certificate)}{allowed}"), *kept)
    if not total.bounded:
        text = (
            "This release has a bound of its own. Another release about the same people has none, so nothing bounds "
            f"what all of them show together.{allowed}"
        )
        return (ReportAlert("No epsilon in total: an earlier release has none", text),)
    return ()


def _kept(certificate: Certificate) -> tuple[ReportAlert, ...]:
    """Return that columns were published as they are, beside crowds that were counted over others."""
    plain = statement_of(certificate).of_role(Role.PLAIN)
    names = kept_columns(certificate.claims, certificate.steps, plain)
    if not names:
        return ()
    text = (
        "No crowd was counted over these columns, which were published as they are. Someone who knows a person's "
        "values there may single one row out."
    )
    return (ReportAlert(f"Outside of the crowds: {listed(list(names))}", text),)


def _drafted(certificate: Certificate) -> str:
    drafts = [name for step in walk(certificate.steps) if isinstance(step, Recode) for name in step.drafted]
    if not drafts:
        return ""
    return f" Rules for these columns were drafted from the rows, which voids any stronger claim: {', '.join(drafts)}."


def _bounded(unit: Unit, odds: Odds) -> tuple[LabelLine, ...]:
    if unit.kind.of_edges:
        return _bounded_edge(unit, odds)
    if unit.adjacency is Adjacency.ADD_REMOVE:
        who = f"{_ATTACKER} You are in the data with a chance of 1 in 2. From this release they guess whether you are."
        question, more = "Can anyone tell that you are in it?", "with your data as without it"
        beside = "With you and without you"
    else:
        who = (
            f"{_ATTACKER} They know that your record is one of two, each as likely. From this release they guess which."
        )
        question, more = "Can anyone tell your record?", "with your record as with any other in its place"
        beside = "With your record and with another"
    right = f"They are right at most {odds.guess} of the time; blind guessing is right 50 % of the time."
    many = chance(min(Decimal(1), odds.delta * _MANY))
    return (
        _protected(unit, bounded=True),
        LabelLine(question, f"A guess is right at most {odds.guess} of the time", f"{who} {right}"),
        LabelLine(
            beside,
            f"Odds change by a factor of {odds.times} at most",
            f"Any conclusion drawn from this release, about you or about anything else, is at most {odds.times} times "
            f"as likely {more}, apart from the chance below. What it says about people in general hangs on no "
            "one person more than that.",
        ),
        LabelLine(
            "Chance that this fails",
            f"{odds.failure[:1].upper()}{odds.failure[1:]}",
            f"That is for each person. The chance that it fails for anyone among a million people is {many}.",
        ),
    )


def _bounded_edge(unit: Unit, odds: Odds) -> tuple[LabelLine, ...]:
    one = unit.kind is Kind.RELATION
    guessed, so = ("One edge is there", "it is") if one else ("Two people are connected", "they are")
    who = (
        "Suppose someone knows all nodes, all other edges, the method and all its settings, and can compute without "
        f"limit. {guessed} with a chance of 1 in 2. From this release they guess whether {so}."
    )
    right = f"They are right at most {odds.guess} of the time; blind guessing is right 50 % of the time."
    return (
        _protected(unit, bounded=True),
        LabelLine(
            "Can anyone tell that an edge is there?" if one else "Can anyone tell that two people are connected?",
            f"A guess is right at most {odds.guess} of the time",
            f"{who} {right}",
        ),
        LabelLine(
            "With the edge and without it",
            f"Odds change by a factor of {odds.times} at most",
            f"Any conclusion drawn from this release is at most {odds.times} times as likely with an edge as without "
            "it, apart from the chance below. Somebody with many edges can lose as much for each of them.",
        ),
        LabelLine("Chance that this fails", f"{odds.failure[:1].upper()}{odds.failure[1:]}", "That is for each edge."),
    )


def _unbounded(certificate: Certificate, published: Description) -> tuple[LabelLine, ...]:
    return (
        _protected(certificate.guarantee.unit, bounded=False),
        LabelLine(
            "Can anyone tell that you are in it?",
            "No bound",
            f"Someone who knows how a person is described in the published columns finds {published.match}, or none. "
            "Someone who knows more than that, or who holds another table about the same people, may single one person "
            "out.",
        ),
        LabelLine(
            "With you and without you",
            "No bound",
            "What can be concluded from this release with your data may be impossible to conclude without it.",
        ),
        LabelLine("Chance that this fails", "Not known", "Without an epsilon there is no guarantee that could fail."),
    )


def _protected(unit: Unit, *, bounded: bool) -> LabelLine:
    if unit.kind is Kind.PERSON:
        short, full = "Each person", f"People are told apart by the column “{unit.column}”; {_rows(unit)}."
    elif unit.kind is Kind.ROW:
        short, full = "Each row", "A row stands for a person: nobody may have more than one row in the table."
    else:
        short, full = f"Each {unit.kind}", f"Everything is stated for {unit}."
    what = (
        "Hidden is whether two nodes are connected; nodes, their number and their columns are not hidden."
        if unit.kind is Kind.EDGE
        else "Hidden is whether one edge is there; other edges of the same two nodes, which may tell of it, are each "
        "hidden alone, and nodes, their number and their columns are not."
        if unit.kind is Kind.RELATION
        else "Hidden is whether someone takes part, and with that everything about that person."
        if unit.adjacency is Adjacency.ADD_REMOVE
        else "Hidden is what someone's record says; how many take part may be known."
    )
    return LabelLine(
        "Who is protected?" if bounded else "Who is counted?",
        short,
        f"{full} {what}" if bounded else f"{full} No single one is guaranteed anything.",
    )


def _rows(unit: Unit) -> str:
    few = "one row" if unit.max_rows == 1 else f"{unit.max_rows} rows"
    if unit.more is ExtraRowsRule.DROP:
        return f"people with more than {few} are left out"
    if unit.more is ExtraRowsRule.REFUSE:
        return f"nobody has more than {few}: the source was checked for it, and publication shows that it passed"
    return "one row of each takes part" if unit.max_rows == 1 else f"at most {few} of each take part"


def _history(certificate: Certificate, total: Odds) -> LabelLine:
    releases, left = certificate.accounting.releases, certificate.accounting.left
    rest = ""
    if left is not None:
        amounts = Odds.of(left)
        rest = f" Left for later releases: ε {short_down(amounts.epsilon)}, δ {short_down(amounts.delta)}."
    if not total.bounded:
        return LabelLine("All releases together", "No bound", f"{counted(releases, 'release')} so far.{rest}")
    if releases == 1:
        return LabelLine(
            "All releases together", "This is the first", f"No other release is charged to this dataset.{rest}"
        )
    return LabelLine(
        "All releases together",
        f"A guess is right at most {total.guess} of the time",
        f"{counted(releases, 'release')} so far, this one included: the odds change by a factor of {total.times} at "
        f"most, the chance of failure is {total.failure} ({total.numbers}).{rest}",
    )
