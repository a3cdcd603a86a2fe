"""Statement: which counts are meant and what becomes of them, put together from the clauses of a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from incrowd.errors import InvalidParameter
from incrowd.workflows.rules import suggestions
from incrowd.workflows.rules.lexicon import Sense, Token, whole
from incrowd.workflows.rules.rule import Zeros

_ACTIONS = (Sense.HIDE, Sense.ZERO, Sense.SHOW)


@dataclass(frozen=True)
class RuleThreshold:
    """What a statement comes to: the least count that is published, and how empty cells look, if it says so."""

    minimum: int
    zeros: Zeros | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Condition:
    """Counts up to `high` (from `low` on), or counts from `low` on if there is no `high`; None: from none on."""

    text: str
    low: int | None
    high: int | None
    notes: tuple[str, ...] = ()

    @property
    def upper(self) -> bool:
        """Whether small counts are meant."""
        return self.high is not None


@dataclass(frozen=True)
class Segment:
    """A clause: the counts that it names, and whether they are published (True) or withheld (False), as often as said.

    `marks` are counts that stand in place of withheld ones (<5, 1-4); `rest` says that all others are meant, `turned`
    that the action of another clause holds unless, and `denied` that there is a `not` which the next one may share.
    """

    conditions: tuple[Condition, ...]
    published: tuple[bool, ...]
    marks: tuple[Condition, ...] = ()
    rest: bool = False
    turned: bool = False
    denied: bool = False

    @classmethod
    def of(cls, part: Sequence[Token], *, denied: bool = False) -> Segment | None:
        """Read a clause; `denied` is a `not` of the clause before, of which this is an `or`."""
        conditions = tuple(condition_of(token) for token in part if token.kind in (Sense.UPPER, Sense.LOWER))
        actions = [token for token in part if token.kind in _ACTIONS]
        inherited = denied and not conditions
        negated = (sum(token.kind is Sense.NOT for token in part) + inherited) % 2 == 1
        unless = any(token.kind is Sense.UNLESS for token in part)
        if negated and not actions:
            if not conditions and not inherited:
                raise InvalidParameter("a 'not' stands alone in this sentence: write it beside what is not done.")
            conditions = tuple(map(_denied, conditions))
        if not conditions and not actions:
            return None
        return cls(
            conditions,
            tuple((token.kind is Sense.SHOW) is not (negated is not unless) for token in actions),
            tuple(condition_of(token) for token in actions if token.sense == "mark" and _is_range(token)),
            rest=any(token.kind is Sense.REST for token in part) and not conditions,
            turned=unless and not actions,
            denied=negated and bool(actions),
        )


def condition_of(token: Token) -> Condition:
    """Return the counts that some words name.

    >>> from incrowd.workflows.rules.lexicon import tokens
    >>> [(each.low, each.high) for each in map(condition_of, tokens("below 5"))]
    [(None, 4)]
    """
    number, low, high = token.number() or 0, token.number("low"), token.number("high")
    match token.sense:
        case "below":
            return Condition(token.text, None, number - 1)
        case "up to":
            return Condition(token.text, None, number)
        case "above":
            return Condition(token.text, number + 1, None)
        case "from":
            return Condition(token.text, number, None)
        case "threshold":
            note = (
                f"a threshold of {number} is read as the least count that is published; if a count of {number} is "
                f"withheld too, say 'suppress counts of {number} or fewer'."
            )
            return Condition(token.text, number, None, (note,))
        case "between":
            note = f"{token.text!r} is read with both ends included."
            return Condition(token.text, low, high, (note,))
        case "chain":
            strict = [token.groups[name] == "<" for name in ("after", "before")]
            return Condition(token.text, (low or 0) + strict[0], (high or 0) - strict[1])
        case "list":
            return _listed(token)
        case "mark" if low is None:
            more = token.number("m")
            return Condition(token.text, None, number - 1 if more is None else more)
        case _:
            return Condition(token.text, low, high)


def _listed(token: Token) -> Condition:
    """Return counts that are listed one by one, or refuse a list with gaps."""
    low_to_high = [*(whole(each.strip()) for each in token.groups["list"].split(",")), token.number("high") or 0]
    if low_to_high != list(range(low_to_high[0], low_to_high[0] + len(low_to_high))):
        raise InvalidParameter(
            f"{token.text!r} lists counts with gaps between them, and a rule has one minimum. Write the least count "
            "that is published, such as 'minimum cell size 11'."
        )
    return Condition(token.text, low_to_high[0], low_to_high[-1])


def _is_range(token: Token) -> bool:
    return bool({"n", "m", "low"} & token.groups.keys())


def _denied(condition: Condition) -> Condition:
    """Return the counts that are left: no cell has fewer than 5, so all have at least 5."""
    if condition.high is not None:
        return replace(condition, low=condition.high + 1, high=None)
    return replace(condition, low=None, high=(condition.low or 0) - 1)


@dataclass(frozen=True)
class RuleStatement:
    """All counts and actions that clauses say together."""

    parts: tuple[Segment, ...]

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The counts that are meant."""
        return tuple(each for part in self.parts for each in part.conditions)

    @property
    def published(self) -> tuple[bool, ...]:
        """What becomes of them, as often as it is said; what becomes of the others, turned around."""
        turned = sum(part.turned for part in self.parts) % 2 == 1
        return tuple(each is not (part.rest is not turned) for part in self.parts for each in part.published)

    def resolved(self) -> RuleThreshold:
        """Return the least count that is published, or refuse what contradicts itself or leaves it open."""
        uppers = [each for each in self.conditions if each.upper]
        lowers = [each for each in self.conditions if not each.upper]
        some = [each for each in lowers if uppers and (each.low or 0) <= 1]  # above 0 and below 5
        lowers = [each for each in lowers if each not in some]
        if not uppers and not lowers:
            raise InvalidParameter(suggestions.without_number(""))
        if len({*self.published}) > 1 or (uppers and lowers):
            raise InvalidParameter(
                f"{_spelled(self.conditions)}: these contradict each other, or say that small counts are published and "
                "large ones withheld. Say which counts are withheld, such as 'counts below 5 are suppressed'."
            )
        if not self.published and uppers:
            raise InvalidParameter(suggestions.without_action(uppers[0].text, (uppers[0].high or 0) + 1))
        if self.published and self.published[0] is bool(uppers):
            raise InvalidParameter(
                f"{_spelled(self.conditions)}: read as it is written, this publishes small counts and withholds large "
                "ones. Say which counts are withheld, such as 'counts below 5 are suppressed'."
            )
        return self._threshold(uppers or lowers, some)

    def _threshold(self, conditions: list[Condition], some: list[Condition]) -> RuleThreshold:
        marks = [each for part in self.parts for each in part.marks]
        named = [*conditions, *marks]
        minima = {each.low if each.high is None else each.high + 1 for each in named}
        if len(minima) > 1:
            listed = " and ".join(sorted(f"{each}" for each in minima))
            raise InvalidParameter(f"a rule has one minimum; {_spelled(named)} say {listed}. Write one of them.")
        starts = {each.low for each in (*named, *some) if each in some or (each.upper and each.low is not None)}
        if any((start or 0) > 1 for start in starts):
            raise InvalidParameter(
                f"{_spelled(named)}: counts from 1 on are the first to need protection, and here the smallest of them "
                "are not withheld. Start the range at 0 or 1, such as 'counts of 1 to 4 are suppressed'."
            )
        zeros = None if not starts else Zeros.SHOWN if starts == {1} else Zeros.HIDDEN
        minimum = minima.pop() or 0
        return RuleThreshold(minimum, zeros, tuple(note for each in named for note in each.notes))


def _spelled(conditions: Iterable[Condition]) -> str:
    return " and ".join(repr(each.text.strip()) for each in conditions)


def gather(segments: Iterable[Segment]) -> list[RuleStatement]:
    """Put clauses together: `if the count is below 5, it is suppressed` is one statement in two clauses."""
    found: list[RuleStatement] = []
    for segment in segments:
        last = found[-1] if found else None
        if last is not None and _belongs(segment, last):
            found[-1] = RuleStatement((*last.parts, segment))
        else:
            found.append(RuleStatement((segment,)))
    return found


def _belongs(segment: Segment, last: RuleStatement) -> bool:
    if not segment.conditions:
        return True
    excluding = any(not each.upper and (each.low or 0) <= 1 for each in (*segment.conditions, *last.conditions))
    if segment.published:  # above 0, and below 5 are suppressed
        return not last.conditions or (excluding and not last.published)
    return excluding or not last.published or not last.conditions
