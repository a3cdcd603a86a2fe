"""What a verification found, and what it says of it in one line and in a few."""

from __future__ import annotations

from dataclasses import dataclass

from incrowd.core.certificate import Certificate
from incrowd.drawing.card import card, facts
from incrowd.verifier.check import STATED, CheckOutcome, Verdict

ABOUT_ASSUMPTION, ABOUT_REPORT, ABOUT_CODE = "assumption", "report", "outside code"
_OUTSIDE = {ABOUT_ASSUMPTION, ABOUT_CODE, STATED, "files", "ledger", "parent", "policy", ABOUT_REPORT, "signature"}
"""Findings about what lies outside of steps, claims and tables: who wrote them, and what they were made with."""


@dataclass(frozen=True, repr=False)
class Verification:
    """All findings; passed means that nothing failed, not that nothing is unknown."""

    certificate: Certificate
    findings: tuple[CheckOutcome, ...]

    @property
    def failure(self) -> CheckOutcome | None:
        """The first finding that failed, if one did."""
        return next((finding for finding in self.findings if finding.verdict is Verdict.FAILED), None)

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return self.failure is None

    @property
    def complete(self) -> bool:
        """Whether every claim was decided, the steps it rests on, and what the tables show of it."""
        return all(finding.verdict is not Verdict.UNKNOWN or finding.about in _OUTSIDE for finding in self.findings)

    @property
    def vouched(self) -> bool:
        """Whether it was shown who wrote the certificate: by the ledger that charged it, or by a trusted signature."""
        return any(
            finding.about in ("ledger", "signature") and finding.verdict is Verdict.PASSED for finding in self.findings
        )

    @property
    def verdict(self) -> str:
        """All of it in one line."""
        if not self.passed:
            return "NOT verified"
        if not self.complete:
            text = "consistent, but some claim or step could not be recomputed: see the question marks"
        else:
            text = "verified" if self.vouched else "consistent; origin not verified"
        return text + self._of_the_code + self._of_the_report

    @property
    def _of_the_code(self) -> str:
        """What is said of a method of another distribution."""
        outside = any(outcome.about == ABOUT_CODE for outcome in self.findings)
        return "; it depends on code that incrowd did not check" if outside else ""

    @property
    def _of_the_report(self) -> str:
        """What is said of a report that this version would not write; a ledger or signature covers its hash."""
        other = any(finding.about == ABOUT_REPORT and finding.verdict is Verdict.UNKNOWN for finding in self.findings)
        return "; the enclosed report is not vouched for" if other else ""

    @property
    def summary(self) -> list[tuple[str, str]]:
        """What failed, what cannot be known here, what is assumed, and how much passed, in this order."""
        lines = [
            ("✗ failed", f"{finding.about}: {finding.why}")
            for finding in self.findings
            if finding.verdict is Verdict.FAILED
        ]
        open_ = [finding for finding in self.findings if finding.verdict is Verdict.UNKNOWN]
        lines += [
            ("? not checked here", f"{finding.about}: {finding.why}")
            for finding in open_
            if finding.about not in (STATED, ABOUT_ASSUMPTION)
        ]
        lines += [(f"? {STATED}", finding.why) for finding in open_ if finding.about == STATED]
        lines += [("? assumed", finding.why) for finding in open_ if finding.about == ABOUT_ASSUMPTION]
        return [*lines, ("✓ passed", _check_count(self.findings))]

    def __repr__(self) -> str:
        return "\n".join([self.verdict, *(f"  {label}: {text}" for label, text in self.summary)])

    def _repr_html_(self) -> str:
        return card(self.verdict, facts(self.summary), note=f"Certificate {self.certificate.id}.")


def _check_count(findings: tuple[CheckOutcome, ...]) -> str:
    passed = [finding.about for finding in findings if finding.verdict is Verdict.PASSED]
    claims = sum(about.startswith(("claim: ", "other published bound: ")) for about in passed)
    return f"{len(passed)} checks" + (f", {claims} of them recomputed claims" if claims else "")
