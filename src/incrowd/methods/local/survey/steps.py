"""The steps of a survey: people randomize and send; reports may be shuffled. And what both let be claimed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.core.claims.claim import GROUPS, Claim, assumed, proved
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.loss import Pure
from incrowd.core.rounding import exact
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee
from incrowd.core.terms import Assumption, Condition, Exposure, Theorem
from incrowd.core.words import counted, short_up
from incrowd.errors import InvalidParameter
from incrowd.methods.local.choice import randomizer_of
from incrowd.methods.local.mechanisms.randomizer import Family, Randomness
from incrowd.methods.local.mechanisms.ratio import LARGEST_EPSILON, exponential_below

if TYPE_CHECKING:
    from incrowd.core.unit import Unit

SOURCE = Theorem(
    "randomized-answers",
    "Warner 1965; Kasiviswanathan et al. 2011: each answer is randomized by itself, by weights whose ratio is at most "
    "e^epsilon",
)
SHUFFLED = Theorem(
    "amplification-by-shuffling",
    "Feldman, McMillan & Talwar 2023 (privacy amplification by shuffling), evaluated as a sum and rounded up",
)
_ASSUMES = frozenset(
    {
        Assumption(
            "randomized-where-given",
            "answers are randomized where they are given, by the published scripts, whose hashes this certificate "
            "names",
        ),
        Assumption("generator-uniform", "the system's generator, or the browser's, gives independent uniform words"),
        Assumption("one-report-each", "each person sends one report, and sends the same one again if asked again"),
        Assumption(
            "surveys-in-one-ledger",
            "all surveys of these people are charged to this ledger, or counted by their own client",
        ),
    }
)
_EXACT = Condition(
    "draws-by-weights",
    "every draw is a whole number below a sum of the published weights, whose ratio is at most e^epsilon",
)
_MEMOS = frozenset(
    {
        Assumption(
            "one-report-a-round",
            "each person sends one report in a round, and sends the same one again if asked again",
        ),
        Assumption(
            "permanent-answers-kept",
            "the permanent answers of a person are drawn once and kept where nobody else reads them; people who lost "
            "them take part no more",
        ),
    }
)
_BEFORE = Condition(
    "permanent-answers-first",
    "permanent answers to all values are drawn before the first answer is given, so that what a person keeps does not "
    "depend on it; beyond the stated number of different answers, the last permanent answer is repeated",
)
_ROUND = Condition("round-without-answer", "the round of a person is drawn with the token, before an answer is given")
PATTERN = Exposure(
    "equality-pattern", "which rounds had the same answer, a return to an earlier one included: a change can show"
)
MEMO = Theorem(
    "memoized-answers",
    "a permanent answer for each value, randomized again in each round",
    "Given the permanent answers, reports are independent.  Over all rounds their law is a product over the different "
    "answers, and each factor is a mixture of the same kernels with weights within the permanent ratio: v "
    "different answers lose v times its logarithm, for any number of rounds, if both histories have the same equality "
    "pattern.  Between any two histories only the number of rounds times the instantaneous loss is a bound.",
)
_ALONE = Condition(
    "report-of-one-answer",
    "a report is made from the answer of one person and randomness of its own, and from nothing else",
)
MEMOIZABLE = (Family.RESPONSE, Family.SYMMETRIC)
"""What a memoized question can be: randomized response twice, or RAPPOR, whose bits are flipped twice."""
MOST_ROUNDS = 4_000
ALL_OF_THEM = "a memoized survey has one question, or all are answered in every round: write `answers: all`."
DEFINITION = "survey.json"
"""The document that is published with a survey's weights: all that pages and clients know of it."""
TAKING_PART = Exposure(
    "taking-part", "that somebody took part, when and from where: only what was answered is protected"
)
INVITED = Exposure("invited", "that somebody who was invited had consented to the purpose of the survey")
SENT = Exposure("sent-before-withdrawal", "a report that was sent before somebody withdrew: it is not called back")
_TOLD_APART = Exposure(
    "reports-told-apart",
    "anyone whose report can be told from the others': to them the claim before this one applies, no more",
)
_WHICH = Exposure(
    "which-question",
    "which of several questions, or which level of a tree, a report is about: it is drawn without the answer",
)
_TRUST = frozenset(
    {
        Assumption(
            "collector-shuffles",
            "the collector shuffles as it says: nobody who sees the batch knows order, time or address of a report",
        ),
        Assumption(
            "honest-people-in-batch",
            "at least as many of each batch as stated are honest: they randomize by this version of the survey, and "
            "tell nobody their report",
        ),
    }
)


@dataclass(frozen=True, kw_only=True)
class LocalPrivacy(PurePrivacy):
    """ε-local differential privacy: it holds for every report by itself, against the collector too."""

    kind = "local differential privacy"

    @property
    def sentence(self) -> str:
        return (
            "For any two answers that a person could give, every report is at most e^ε times as likely under one as "
            "under the other. This is so for every reader, the collector included."
        )


@dataclass(frozen=True, kw_only=True)
class ShuffledPrivacy(Claim):
    """(ε, δ)-differential privacy of a batch of shuffled reports, against those who see the batch alone."""

    kind = "differential privacy of a shuffled batch"
    rank: ClassVar[int] = 20
    numbers: ClassVar[Mapping[str, str]] = {"epsilon": "shuffled epsilon"}

    epsilon: Decimal
    delta: Fraction
    people: int
    values: int | None = None

    @property
    def sentence(self) -> str:
        return (
            f"A batch of reports is seen without order and senders, {self.people:,} of them from honest people. For "
            "any two answers of one of those people, every set of outcomes has at most e^ε times its probability under "
            "the other answer, plus δ."
        )


class WhichAnswers(StrEnum):
    """Which answers a report holds: one, of a question that is drawn at random, or all."""

    ONE = "one"
    ALL = "all"


class RoundForm(StrEnum):
    """How people take part in a survey with rounds."""

    ONE = "one round per person"
    """Each person answers in one round, which is drawn with the token."""
    MEMOIZED = "memoized"
    """Each person answers in every round, by permanent answers that the person keeps."""


@dataclass(frozen=True)
class SurveyRounds:
    """The rounds of a survey: how many, how people take part, and how many different answers of one are reported."""

    count: int
    form: RoundForm = RoundForm.ONE
    distinct: int | None = None

    def __post_init__(self) -> None:
        if not 2 <= self.count <= MOST_ROUNDS:
            raise InvalidParameter(f"a survey has 2 to {MOST_ROUNDS:,} rounds; leave rounds: out for a single one.")
        if (self.distinct is None) == (self.form is RoundForm.MEMOIZED):
            raise InvalidParameter("only a memoized survey says how many different answers of a person are reported.")

    @property
    def memoized(self) -> bool:
        """Whether people keep permanent answers."""
        return self.form is RoundForm.MEMOIZED


@dataclass(frozen=True, kw_only=True)
class MemoizedPrivacy(PurePrivacy):
    """ε for all rounds together, against those who know which rounds had equal answers; and what holds without that."""

    kind = "local differential privacy of answers, their pattern known"
    instead: ClassVar[str] = "with any other answers in place of yours that are equal in the same rounds"
    numbers: ClassVar[Mapping[str, str]] = {"epsilon": "epsilon", "any_histories": "any histories"}

    any_histories: Decimal
    rounds: int
    distinct: int

    @property
    def sentence(self) -> str:
        return (
            "What somebody answered is hidden, up to e^ε, from those who know which rounds had equal answers: for two "
            f"histories with the same pattern and at most {counted(self.distinct, 'different answer')} to a question, "
            f"the reports of all {self.rounds:,} rounds are at most e^ε times as likely under one as under the other. "
            "Which rounds had the same answer, a return to an earlier one included, is not hidden: between any two "
            f"histories the bound is ε {short_up(self.any_histories, 6)}."
        )


@dataclass(frozen=True)
class AskedQuestion:
    """A question: its name, what it asks for, and the weights of its randomizers, level by level.

    Those of a memoized question are two: of the permanent answer, and of a report of it.
    """

    name: str
    asks: str
    randomizers: tuple[Randomness, ...]


@dataclass(frozen=True)
class CollectReports(Step):
    """Each person sends a report of randomized answers; `survey` is the digest of what is published."""

    kind: ClassVar[str] = "collect reports"
    title: ClassVar[str] = "Randomize before sending"
    documents: ClassVar[tuple[str, ...]] = (DEFINITION,)

    survey: str
    scripts: tuple[tuple[str, str], ...]
    questions: tuple[AskedQuestion, ...]
    epsilon: Fraction
    purpose: str | None = None
    """What people must have consented to when they are invited, where the survey asks for it."""
    answers: WhichAnswers = WhichAnswers.ONE
    rounds: SurveyRounds | None = None

    def __post_init__(self) -> None:
        if self.memoized and not all(_twice(question.randomizers) for question in self.questions):
            raise InvalidParameter("a memoized question has a permanent and an instantaneous randomizer of one kind.")
        if self.memoized and self.answers is WhichAnswers.ONE and len(self.questions) > 1:
            raise InvalidParameter(ALL_OF_THEM)
        if not self.questions or not all(question.randomizers for question in self.questions):
            raise InvalidParameter("a survey has at least one question, and each has a randomizer.")
        if self.ratio > exponential_below(self.epsilon):
            raise InvalidParameter("some report is likelier for one answer than for another by more than e^epsilon.")

    @classmethod
    def read(cls, plain: Mapping[str, Any], classes: Iterable[type[Step]]) -> Step | None:
        stated = plain.get("epsilon")
        if isinstance(stated, str) and exact(stated, "epsilon") > LARGEST_EPSILON:
            raise InvalidParameter(
                f"this certificate states an epsilon above {LARGEST_EPSILON} for one report. That hides nothing, and "
                "is not judged. Do not rely on it."
            )
        return super().read(plain, classes)

    @property
    def ratio(self) -> Fraction:
        """By how much a report is likelier for some answers than for others, at most; or all of a memoized survey."""
        if self.rounds is not None and self.rounds.distinct is not None:
            permanent = (randomizer_of(question.randomizers[0]) for question in self.questions)
            powers = (made.ratio ** min(self.rounds.distinct, made.size) for made in permanent)
            return math.prod(powers, start=Fraction(1))
        ratios = [max(randomizer_of(part).ratio for part in question.randomizers) for question in self.questions]
        return max(ratios) if self.answers is WhichAnswers.ONE else math.prod(ratios, start=Fraction(1))

    @property
    def memoized(self) -> bool:
        """Whether people keep permanent answers over rounds."""
        return self.rounds is not None and self.rounds.memoized

    @property
    def any_histories(self) -> Fraction:
        """The ratio of all reports of a memoized survey between any two histories of answers, at most."""
        count = 1 if self.rounds is None else self.rounds.count
        once = Fraction(1)
        for part in (question.randomizers[-1] for question in self.questions):
            # two permanent answers can differ in every bit
            bits = part.size if part.family is Family.SYMMETRIC else 1
            once *= Fraction(part.own, part.other) ** bits
        return once**count

    @property
    def sentence(self) -> str:
        return f"{self._randomized}{self._rounds}"

    @property
    def _rounds(self) -> str:
        if self.rounds is None:
            return ""
        if not self.memoized:
            return (
                f" There are {self.rounds.count:,} rounds; each person answers in one, which is drawn with the token, "
                "before an answer is given."
            )
        return (
            f" There are {self.rounds.count:,} rounds. For every possible answer each person draws a permanent answer, "
            "before the first round and for good; in a round, the permanent answer to the true one is randomized again "
            f"and sent. After {counted(self.rounds.distinct or 0, 'different answer')} the last permanent answer is "
            "repeated."
        )

    @property
    def _randomized(self) -> str:
        number = counted(len(self.questions), "question")
        single, together = len(self.questions) == 1, self.answers is WhichAnswers.ALL
        which = "answers" if single or together else "answers one, drawn at random, of"
        added = "; the losses of all answers add up to epsilon" if together and not single else ""
        invited = (
            ""
            if self.purpose is None
            else f" Tokens are made, and answers of a table randomized, for people whose consent to “{self.purpose}” "
            "stands at that moment, and for nobody else; whose a token is, the collector does not know."
        )
        return (
            f"Each person {which} {number}; {'every' if added else 'the'} answer is randomized before it is sent, and "
            f"only the report is sent{added}.{invited}"
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if not self.memoized:
            return StepGuarantee(Pure(self.epsilon), (SOURCE,), _ASSUMES)
        assumes = {assumption for assumption in _ASSUMES if assumption.key != "one-report-each"}
        return StepGuarantee(Pure(self.epsilon), (MEMO,), frozenset(assumes) | _MEMOS)

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        unit = basis.unit
        consent = () if self.purpose is None else (INVITED, SENT)
        open_ = (GROUPS, TAKING_PART, *((_WHICH,) if self._random_level else ()), *consent)
        if self.rounds is not None and self.rounds.distinct is not None:
            return (
                MemoizedPrivacy(
                    epsilon=basis.epsilon,
                    any_histories=Decimal(basis.numbers["any histories"]),
                    rounds=self.rounds.count,
                    distinct=self.rounds.distinct,
                    adjacency=unit.adjacency,
                    max_rows=unit.max_rows,
                    unit=unit,
                    theorem=(MEMO,),
                    preconditions=(*proved(_EXACT, _BEFORE), *assumed(basis.guarantee.assumes)),
                    not_protected=(PATTERN, *open_),
                ),
            )
        drawn_round = () if self.rounds is None else (_ROUND,)
        return (
            LocalPrivacy(
                epsilon=basis.epsilon,
                adjacency=unit.adjacency,
                max_rows=unit.max_rows,
                unit=unit,
                theorem=(SOURCE,),
                preconditions=(*proved(_EXACT, _ALONE, *drawn_round), *assumed(basis.guarantee.assumes)),
                not_protected=open_,
            ),
        )

    @property
    def _random_level(self) -> bool:
        several = len(self.questions) > 1 and self.answers is WhichAnswers.ONE
        return several or any(len(question.randomizers) > 1 for question in self.questions if not self.memoized)


def _twice(randomizers: tuple[Randomness, ...]) -> bool:
    """Whether these are a permanent and an instantaneous randomizer of the same values."""
    families = {(part.family, part.size) for part in randomizers}
    return len(randomizers) == 2 and len(families) == 1 and randomizers[0].family in MEMOIZABLE


@dataclass(frozen=True)
class ShuffleReports(Step):
    """Reports wait in memory until a batch is full, are permuted, and stored together; tokens are stored alone."""

    kind: ClassVar[str] = "shuffle reports"
    title: ClassVar[str] = "Shuffle each batch"
    documents: ClassVar[tuple[str, ...]] = (DEFINITION,)

    batch: int
    honest: int
    delta: Fraction

    def __post_init__(self) -> None:
        if not 2 <= self.honest <= self.batch or not 0 < self.delta < 1:
            raise InvalidParameter("a batch has two or more honest people, and a delta strictly between 0 and 1.")

    @property
    def sentence(self) -> str:
        return (
            f"Reports wait in memory until there are {self.batch:,}, are brought into a random order and stored as one "
            "entry; which token was used is stored apart from them, without order or time."
        )

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        collect = basis.need(CollectReports)
        return (
            ShuffledPrivacy(
                epsilon=Decimal(basis.numbers["shuffled epsilon"]),
                delta=self.delta,
                people=self.honest,
                values=values_of_response(collect),
                unit=basis.unit,
                theorem=(SHUFFLED,),
                preconditions=(*proved(_EXACT, _ALONE), *assumed(basis.guarantee.assumes | _TRUST)),
                not_protected=(
                    GROUPS,
                    TAKING_PART,
                    _TOLD_APART,
                ),
            ),
        )


def values_of_response(collect: CollectReports) -> int | None:
    """Return how many values there are if every report is randomized response over them, for which less is lost."""
    if len(collect.questions) != 1 or len(collect.questions[0].randomizers) != 1:
        return None
    randomness = collect.questions[0].randomizers[0]
    return randomness.size if randomness.family is Family.RESPONSE and randomness.size > 2 else None
