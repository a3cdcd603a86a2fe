"""Rows: whose rows take part, how their values are recoded, and in which order they are published."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.claims.privacy import pseudonymity
from incrowd.core.cleaning import CleaningRule
from incrowd.core.domain import Provenance
from incrowd.core.hierarchy.hierarchy import HierarchyRule, RuleKind
from incrowd.core.loss import Crowd, Grouped, Loss, NoisyWhenSmall, RobustlySampled, Sampled, Syntactic, walk
from incrowd.core.schema import Missing, Outside
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee
from incrowd.core.terms import Assumption, Theorem, joined
from incrowd.core.unit import ExtraRowsRule
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.core.cells import Cells
    from incrowd.core.claims.claim import Claim
    from incrowd.core.recoding import Recoding
    from incrowd.core.unit import Unit

DRAFTED = "drafted"
"""The parameter of a guarantee of form that names the columns whose rules were drafted from rows."""
_VOID = Theorem("counted-drafted", "counted in the output; data-dependent rules void the rest")
CLEANED = Assumption("cleaned-as-confirmed", "the data holder confirmed the cleaning rules without regard to the rows")
PEOPLE = Theorem("group-privacy", "group privacy over a person's rows, each sampled independently")
_ALONE = Theorem(
    "counted-several-rows", "counted in the output; a person with several rows, of which one is kept, does not blend"
)


@dataclass(frozen=True)
class KeepRows(Step):
    """At most `rows` rows of each person take part: a random choice where a person has more.

    `more` excludes people with more rows instead, or refuses a source that contains one.
    """

    kind: ClassVar[str] = "keep rows of each person"
    title: ClassVar[str] = "Limit rows per person"
    glyph: ClassVar[str | None] = "fewer"

    column: str
    rows: int
    more: ExtraRowsRule | None = None

    @property
    def sentence(self) -> str:
        rows, ids = counted(self.rows, "row"), f"person ID column: “{self.column}”"
        if self.more is ExtraRowsRule.DROP:
            return f"All rows of people with more than {rows} are suppressed ({ids})."
        if self.more is ExtraRowsRule.REFUSE:
            return (
                f"Nobody has more than {rows} ({ids}). A source in which anyone has more is refused, so publication "
                "shows that this check passed."
            )
        part = "One row" if self.rows == 1 else f"At most {rows}"
        return f"{part} of each person, chosen at random, {'takes' if self.rows == 1 else 'take'} part ({ids})."

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Group what is guaranteed for one row, and say why for crowds; noise on a person's rows needs nothing.

        On a sample, keeping one random row of each person changes nothing: the guarantee for one row each holds for
        every choice of rows, and so on average.  Without a sample, a person with several rows, of which one is kept,
        does not blend: the form of the table remains.
        """
        if isinstance(inner.loss, Crowd) and unit.max_rows == 1 and not unit.single:
            return _form_alone(inner.loss)
        if unit.max_rows == 1 or not isinstance(inner.loss, Sampled | RobustlySampled | Crowd):
            return inner
        crowd = inner.loss if isinstance(inner.loss, Crowd) else inner.loss.inner
        explained = not isinstance(crowd, Crowd) or PEOPLE in inner.because
        because = inner.because if explained else (*inner.because, PEOPLE)
        return replace(inner, loss=Grouped(self.rows, inner.loss), because=because)


@dataclass(frozen=True)
class CleanedCells:
    """How the cells of a column were rewritten: kinds of rules and labels; never a text that was rewritten."""

    rules: tuple[CleaningRule, ...]
    labels: tuple[str, ...]
    provenance: Provenance


@dataclass(frozen=True)
class RecodedColumn:
    """How one column is recoded: to which of how many levels, by which rule, and where the rule comes from.

    The level is chosen from `level` to `highest` where that is stated.  A missing value becomes `fill` where that is
    stated; without either, a set without items.  `outside` is None where no value can be outside; it is `bound` where a
    published number at a bound stands for those beyond it.
    """

    column: str
    level: int
    of: int
    rule: HierarchyRule
    provenance: Provenance
    missing: Missing | None = None
    fill: str | None = None
    outside: Outside | None = None
    highest: int | None = None
    clean: CleanedCells | None = None

    @property
    def levels(self) -> range:
        """The levels that it may come to: the stated one, or those among which it is chosen."""
        return range(self.level, (self.level if self.highest is None else self.highest) + 1)

    @property
    def drafted(self) -> bool:
        """Whether the rule was drafted from rows, and no public source is named that says the same."""
        return not self.provenance.sound or (self.clean is not None and not self.clean.provenance.sound)

    @property
    def confirmed(self) -> bool:
        """Whether it is cleaned by rules that were suggested from rows, and that the data holder confirmed."""
        return self.clean is not None and self.clean.provenance.derived and self.clean.provenance.sound

    @property
    def pseudonymous(self) -> bool:
        """Whether values are replaced by keyed pseudonyms."""
        return self.rule.kind is RuleKind.PSEUDONYM


@dataclass(frozen=True)
class Recode(Step):
    """Each row is recoded by itself, by declared rules."""

    kind: ClassVar[str] = "recode"
    title: ClassVar[str] = "Recode"
    glyph: ClassVar[str | None] = "coarser"

    columns: tuple[RecodedColumn, ...]

    @property
    def sentence(self) -> str:
        coarser = sum(column.level > 0 or column.highest is not None for column in self.columns)
        generalized = (
            f"{coarser} of {counted(len(self.columns), 'column')} are generalized, row by row, by declared rules."
        )
        cleaned = [f"“{column.column}” ({joined(column.clean.rules)})" for column in self.columns if column.clean]
        return generalized + (f" Cells are cleaned first: {'; '.join(cleaned)}." if cleaned else "")

    @property
    def drafted(self) -> tuple[str, ...]:
        """The columns whose rules were drafted from rows."""
        return tuple(column.column for column in self.columns if column.drafted)

    @property
    def names(self) -> tuple[str, ...]:
        """The recoded columns."""
        return tuple(column.column for column in self.columns)

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Leave only the form of the table where rules were drafted from rows, and name those columns in it."""
        if any(column.confirmed for column in self.columns):
            inner = replace(inner, assumes=inner.assumes | {CLEANED})
        names = self.drafted
        if names and isinstance(inner.loss, Syntactic):
            form = replace(inner.loss, parameters=(*inner.loss.parameters, (DRAFTED, names)))
            return replace(inner, loss=form)
        if not names or not isinstance(inner.loss, Crowd):
            return inner
        form = Syntactic("k-anonymity", (("k", str(inner.loss.k)), (DRAFTED, names)))
        return StepGuarantee(form, (_VOID,))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim that some columns hold pseudonyms, where they do."""
        return pseudonymity(tuple(column.column for column in self.columns if column.pseudonymous), basis.unit)


@dataclass(frozen=True)
class Arrange(Step):
    """Rows are published in the order of their values, which reveals nothing."""

    kind: ClassVar[str] = "arrange"
    title: ClassVar[str] = "Publish, sorted"
    glyph: ClassVar[str | None] = "sorted"

    @property
    def sentence(self) -> str:
        return "Rows are sorted by released values, so their order reveals nothing."


@dataclass(frozen=True)
class Order(Arrange):
    """Rows are published in the order of their values, perhaps with a weight that is the same for all."""

    kind: ClassVar[str] = "order"

    weights: bool

    @property
    def sentence(self) -> str:
        return super().sentence + (" Every row carries the same weight." if self.weights else "")


def recode(cells: Cells) -> Recode:
    """Return the step that recodes rows into cells."""
    return Recode(tuple(map(recoded, cells.recodings)))


def recoded(recoding: Recoding, highest: int | None = None) -> RecodedColumn:
    """Return how a column is recoded; `highest` is the last of the levels where one is chosen."""
    column = recoding.column
    sources = (column.hierarchy.provenance, column.domain.provenance)
    return RecodedColumn(
        column.name,
        recoding.level,
        column.hierarchy.height,
        column.hierarchy.rule,
        next((source for source in sources if not source.sound), sources[0]),
        Missing(column.missing) if column.fill is None else None,
        column.fill,
        column.stated_outside(recoding.level),
        highest,
        None
        if column.clean is None
        else CleanedCells(column.clean.rules, column.clean.labels, column.clean.provenance),
    )


def keep_rows(unit: Unit) -> tuple[KeepRows, ...]:
    """Return the step that limits the rows of each person; none where one row is one person."""
    return () if unit.column is None else (KeepRows(unit.column, unit.max_rows, unit.more),)


def keeps_rows_of(step: KeepRows | None, unit: Unit) -> bool:
    """Whether a step limits the rows of each person as a unit states."""
    stated = () if step is None else (step.column, step.rows, step.more)
    return stated == (() if unit.column is None else (unit.column, unit.max_rows, unit.more))


def drafted_cause(loss: Loss) -> str | None:
    """Return a message if rules drafted from rows are the reason why a guarantee has no ε; else None.

    >>> drafted_cause(Syntactic("k-anonymity", ((DRAFTED, ("sex", "zip")),)))
    'this guarantee has no epsilon, because these were drafted from rows (derived: rows): sex, zip. Write there...'
    """
    forms = [part for part in walk(loss) if isinstance(part, Syntactic)]
    names = [column for form in forms for name, columns in form.parameters if name == DRAFTED for column in columns]
    if not names:
        return None
    return (
        f"this guarantee has no epsilon, because these were drafted from rows (derived: rows): {', '.join(names)}. "
        "Write there what is publicly known and remove derived: rows; or, where a public source says the same, add "
        "public: and that source."
    )


def _form_alone(crowd: Crowd) -> StepGuarantee:
    if isinstance(crowd, NoisyWhenSmall):
        raise InvalidParameter(
            "without a secret sample, noise on small counts guarantees nothing to a person with several rows, of which "
            "one is kept: write more: drop beside the person ID column, which excludes such people, or more: refuse."
        )
    return StepGuarantee(Syntactic("k-anonymity", (("k", str(crowd.k)),)), (_ALONE,))
