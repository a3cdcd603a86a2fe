"""Attack: run adversaries against a release, with its data and a control group; internal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from incrowd.attacks import attack_names, attack_of
from incrowd.attacks.finding import CONFIDENCE, Finding, Risk, above, check_enough, corrected
from incrowd.attacks.knowledge import ATTACKERS, Knowledge, PublishedTable, sweep
from incrowd.core.table import Progress
from incrowd.errors import InvalidParameter

_SWEPT = ("linkage", "homogeneity", "skewness")
_DEFAULT_ATTACKER = "prosecutor"
INTERNAL = "made from the original rows: keep it apart from what is published"
Tables = Sequence[tuple[str, PublishedTable]]


@dataclass(frozen=True)
class AttackRun:
    """An attack that was run: its attacker, its table, and its finding."""

    attacker: str
    table: str
    finding: Finding

    def to_json(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return {**self.finding.to_json(), "attacker": self.attacker, "table": self.table}


@dataclass(frozen=True)
class AttackReport:
    """The result of several attacks: findings with simultaneous confidence intervals, and what did not apply."""

    runs: tuple[AttackRun, ...]
    skipped: Mapping[str, str]
    confidence: float

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all runs."""
        return tuple(run.finding for run in self.runs)

    def exceeding(self, thresholds: Mapping[str, float]) -> tuple[AttackRun, ...]:
        """Return the attacks that are not shown to stay below their threshold.

        A threshold is named after an attack or one of the three risks, or is `any`; the most specific one counts.
        """
        known_names = {"any", *attack_names(), "singling out", "linkability", "inference"}
        if unknown := [name for name in thresholds if name not in known_names]:
            raise InvalidParameter(f"there is no attack or risk {unknown[0]!r} to set a threshold for.")
        exceeding = []
        for run in self.runs:
            names = (run.finding.attack, str(run.finding.risk), "any")
            limit = next((thresholds[name] for name in names if name in thresholds), None)
            if limit is not None and above([run.finding], limit):
                exceeding.append(run)
        return tuple(exceeding)

    def by_risk(self, over: Sequence[AttackRun] = ()) -> dict[str, Any]:
        """Return the values for JSON under the three risks; `over` are the runs above a threshold."""
        runs_by_risk = {
            str(risk): [{**run.to_json(), "above": run in over} for run in self.runs if run.finding.risk is risk]
            for risk in Risk
        }
        return {"internal": INTERNAL, "confidence": self.confidence, **runs_by_risk, "skipped": dict(self.skipped)}

    def to_json(self) -> dict[str, Any]:
        """Return the values for JSON, without stories."""
        return {
            "internal": INTERNAL,
            "confidence": self.confidence,
            "findings": [run.to_json() for run in self.runs],
            "skipped": dict(self.skipped),
        }


@dataclass(frozen=True, eq=False)
class AttackOrder:
    """What to run: attacks (all that apply, if none is named), attackers, sweeps, the confidence."""

    attacks: tuple[str, ...] = ()
    attackers: tuple[str, ...] = ()
    sweep: int | None = None
    confidence: float = CONFIDENCE
    changed: pa.Table | None = None
    """People who left or joined between two releases, for differencing."""

    def __post_init__(self) -> None:
        for name in self.attacks:
            attack_of(name)
        for name in self.attackers:
            if name not in ATTACKERS:
                raise InvalidParameter(f"there is no attacker {name!r}; there are {', '.join(ATTACKERS)}.")


EVERYTHING = AttackOrder()


@dataclass(frozen=True, eq=False)
class AttackTarget:
    """A published table with its name, what is known of its people, and the control group."""

    name: str
    published: PublishedTable
    knowledge: Knowledge
    control: pa.Table | None


def attack(
    tables: Tables,
    knowledge: Knowledge,
    control: pa.Table | None,
    order: AttackOrder = EVERYTHING,
    tell: Progress | None = None,
) -> AttackReport:
    """Attack tables about the same people; see `attack_all`."""
    return attack_all([AttackTarget(name, published, knowledge, control) for name, published in tables], order, tell)


def attack_all(
    targets: Sequence[AttackTarget], order: AttackOrder = EVERYTHING, tell: Progress | None = None
) -> AttackReport:
    """Run the named attacks, or all that apply, and correct their confidence intervals for their number.

    An attack that does not apply is skipped, with the reason; if it was named, that is an error.  `tell` receives how
    many attacks have ended, of how many.
    """
    runs: list[AttackRun] = []
    skipped: dict[str, str] = {}
    planned = list(_plan(targets, order))
    for place, (name, attacker, target, known_to_attacker) in enumerate(planned):
        if tell is not None:
            tell(place, len(planned))
        try:
            finding = attack_of(name)(target.published, known_to_attacker, target.control)
        except InvalidParameter as error:
            if order.attacks and len(targets) == 1:
                raise
            skipped[name] = str(error)
        else:
            runs.append(AttackRun(attacker, target.name, finding))
    if not runs:
        raise InvalidParameter(f"no attack applies: {next(iter(skipped.values()), 'none was named')}")
    level = 1.0 - (1.0 - order.confidence) / len(runs)
    for target in targets:
        control = target.control
        check_enough(target.knowledge.people.num_rows, None if control is None else control.num_rows, level)
    fixed = corrected([run.finding for run in runs], order.confidence)
    done = tuple(replace(run, finding=finding) for run, finding in zip(runs, fixed, strict=True))
    names = {run.finding.attack for run in done}
    return AttackReport(done, {name: why for name, why in skipped.items() if name not in names}, order.confidence)


def _plan(targets: Sequence[AttackTarget], order: AttackOrder) -> Iterator[tuple[str, str, AttackTarget, Knowledge]]:
    """Yield every attack with its attacker, its table and what is known."""
    for attacker in order.attackers or (_DEFAULT_ATTACKER,):
        for target in targets:
            known_to_attacker = ATTACKERS[attacker].knows(target.knowledge, target.published.columns)
            for name in order.attacks or _applying(target.published, target.knowledge, order):
                if name == "differencing" and order.changed is not None:
                    yield name, attacker, target, replace(known_to_attacker, people=order.changed)
                elif order.sweep is not None and name in _SWEPT:
                    for part in sweep(known_to_attacker, order.sweep):
                        yield name, attacker, target, part
                else:
                    yield name, attacker, target, known_to_attacker


def _applying(published: PublishedTable, knowledge: Knowledge, order: AttackOrder) -> tuple[str, ...]:
    """Return the attacks that apply to these inputs."""
    without = set()
    if knowledge.secret is None:
        without |= {"homogeneity", "skewness", "learning", "intersection", "minimality", "inference"}
    if knowledge.item is None:
        without |= {"similarity", "baskets"}
    if not published.earlier:
        without |= {"intersection", "differencing"}
    if order.changed is None:
        without |= {"differencing"}
    if knowledge.person is None or knowledge.item is not None:
        without |= {"household-linkage"}
    if published.count is None:
        without |= {"count-reconstruction"}
    return tuple(name for name in attack_names() if name not in without)
