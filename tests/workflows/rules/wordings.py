"""Wordings of rules as statistical offices, health services and universities write them, with what each one says."""

from __future__ import annotations

from dataclasses import dataclass

from incrowd.workflows.rules.rule import Rounding, Zeros

HIDDEN, SHOWN, UNSAID = Zeros.HIDDEN, Zeros.SHOWN, Zeros.UNSAID
RANDOM, UP, DOWN = Rounding.RANDOM, Rounding.UP, Rounding.DOWN


@dataclass(frozen=True)
class Wording:
    """A sentence, the least count that it publishes, and how empty cells look; then what it rounds to, and how."""

    sentence: str
    minimum: int
    zeros: Zeros = UNSAID
    base: int | None = None
    rounding: Rounding = Rounding.NEAREST
    secondary: bool = False


WORDINGS = (
    # withheld by a number below which nothing shows
    Wording("Counts below 5 are redacted", 5),
    Wording("Small numbers (<5) have been redacted", 5),
    Wording("No cell less than 11 may be displayed", 11),
    Wording("No cell (e.g. admissions, discharges, patients) 10 or less may be displayed", 11),
    Wording("no cells smaller than 11 will be published", 11),
    Wording("Cells with fewer than 10 observations must not be released", 10),
    Wording("Cells containing fewer than 10 persons shall not be disclosed.", 10),
    Wording("Do not display counts of less than 5", 5),
    Wording("Values under 6 are replaced by an asterisk", 6),
    Wording("Counts under 6 are replaced with '*'", 6),
    Wording("numbers less than 3 are shown as x", 3),
    Wording("counts fewer than 5 are reported as <5", 5),
    Wording("counts lower than 10 are blanked out", 10),
    Wording("counts below 10 are left blank", 10),
    Wording("Any table cell with a count under 20 is censored", 20),
    Wording("cells with less than 3 contributors are confidential", 3),
    Wording("counts below 10 cannot be reported", 10),
    Wording("Figures based on fewer than 30 respondents are not shown", 30),
    Wording("If the count is less than 5, it is suppressed", 5),
    Wording("If a cell has fewer than 5 patients then suppress it", 5),
    Wording("suppress small cells where n < 6", 6),
    Wording("small number suppression: <5", 5),
    Wording("cells with a count below ten are omitted from the table", 10),
    Wording("cells below 5 are suppressed and replaced with *", 5),
    Wording("counts strictly below 5 are masked", 5),
    Wording("Counts fewer than 11 are suppressed to protect confidentiality", 11),
    Wording("For privacy reasons, counts of less than 5 are not displayed", 5),
    Wording("Numbers less than five (5) are replaced with a dash to prevent identification of individuals", 5),
    Wording('Report as "<11" any count below 11', 11),
    Wording("suppress if less than 3 enterprises contribute", 3),
    Wording("base sizes under 50 are not reported", 50),
    Wording("cells below 5 must not be published or disclosed", 5),
    # withheld up to a number
    Wording("counts of 5 or below are suppressed", 6),
    Wording("counts of 4 and under are suppressed", 5),
    Wording("counts up to and including 4 are suppressed", 5),
    Wording("cells not exceeding 10 are withheld", 11),
    Wording("suppress anything less than or equal to 4", 5),
    Wording("cells of ten or less are suppressed", 11),
    Wording("counts <= 7 are redacted", 8),
    # published from a number on
    Wording("publish only counts of 10 and above", 10),
    Wording("Cells are published only if they contain at least 5 people", 5),
    Wording("a minimum of 10 contributors is required", 10),
    Wording("each cell must have a minimum of 10 unweighted observations", 10),
    Wording("each cell must contain at least 10 individuals", 10),
    Wording("every cell must be based on 3 or more respondents", 3),
    Wording("no cell may contain fewer than 10 people", 10),
    Wording("Cell counts must not be less than 10", 10),
    Wording("cells are not published unless they contain at least 10 persons", 10),
    Wording("suppress cells unless n >= 5", 5),
    Wording("cells are published unless they contain fewer than 5 people", 5),
    Wording("counts of 10 or more are published, counts below 10 are suppressed", 10),
    Wording("publish counts of at least 10, suppress the rest", 10),
    Wording("publish counts of 10 or more, otherwise show 0", 10, HIDDEN),
    Wording("minimum cell count: 16", 16),
    Wording("minimum cell size of 10 persons", 10),
    Wording("the minimum cell size is ten", 10),
    Wording("minimum frequency threshold of 10", 10),
    Wording("frequency threshold: 10 units", 10),
    Wording("a threshold rule of 3", 3),
    Wording("rule of 10", 10),
    Wording("k-anonymity with k = 5", 5),
    Wording("10+ people per cell", 10),
    Wording("at least three respondents must contribute to each cell", 3),
    Wording("minimum n-size of 20", 20),
    Wording("minimum threshold: n≥5", 5),
    Wording("cells are suppressed, unless they have at least 10 people", 10),
    # zeros
    Wording("Counts of 1-5 are shown as '≤5'", 6, SHOWN),
    Wording("cells with values less than 6 and greater than 0 are suppressed", 6, SHOWN),
    Wording("Any number smaller than 6 but not zero is suppressed", 6, SHOWN),
    Wording("any value from 1 to 5 is redacted, zeros are left as they are", 6, SHOWN),
    Wording("zeros and counts below 5 are suppressed", 5, HIDDEN),
    Wording("zeros and counts of 10 or more are published", 10, SHOWN),
    Wording("counts of 1 are suppressed", 2, SHOWN),
    Wording('counts of 0-4 are grouped as "<5"', 5, HIDDEN),
    Wording("counts between 1 and 7 are suppressed", 8, SHOWN),
    Wording("Counts between 1 and 7 become 0", 8, HIDDEN),
    Wording("counts from 1 through 10 are suppressed", 11, SHOWN),
    Wording("cells with 1-10 people are suppressed", 11, SHOWN),
    Wording("counts of 1 or 2 are suppressed", 3, SHOWN),
    Wording("counts of 1, 2, 3 or 4 are suppressed", 5, SHOWN),
    Wording("counts of 0 to 4 are suppressed", 5, HIDDEN),
    Wording("counts of 0 to 4 are redacted", 5, HIDDEN),
    Wording("counts below 5 except zero are suppressed", 5, SHOWN),
    Wording("suppress counts below 5, excluding zeros", 5, SHOWN),
    Wording("suppress counts under 5 (excluding true zeros)", 5, SHOWN),
    Wording("counts of 7 or fewer, except zero, are shown as *", 8, SHOWN),
    Wording("non-zero counts below 5 are suppressed", 5, SHOWN),
    Wording("suppress counts greater than 0 and less than 5", 5, SHOWN),
    Wording("suppress cells with 0 < n < 6", 6, SHOWN),
    Wording("counts below 5, including zero, are suppressed", 5, HIDDEN),
    Wording("counts below 10 are suppressed, zeros are not suppressed", 10, SHOWN),
    Wording("minimum cell size 11; zero counts may be displayed", 11, SHOWN),
    Wording("counts fewer than 5 are reported as 1-4", 5, SHOWN),
    Wording("counts of 4 or fewer are recoded to zero", 5, HIDDEN),
    Wording("counts below 5 are rounded down to zero", 5, HIDDEN),
    # rounding
    Wording("counts of 1 to 7 are suppressed and all other counts are rounded to the nearest 5", 8, SHOWN, 5),
    Wording("Counts are suppressed if below 10, and the remaining counts are rounded to the nearest 5", 10, UNSAID, 5),
    Wording("fewer than 5 suppressed, others rounded to multiples of 10", 5, UNSAID, 10),
    Wording("round to 5, then suppress counts below 11", 13, UNSAID, 5),
    Wording("first round to the nearest 5, then suppress counts below 10", 8, UNSAID, 5),
    Wording("suppress counts below 10 after rounding to the nearest 10", 5, UNSAID, 10),
    Wording("round to the nearest 5 after suppressing counts below 11", 11, UNSAID, 5),
    Wording("all counts are rounded to the nearest 5", 3, HIDDEN, 5),
    Wording("counts are rounded to base 3", 2, HIDDEN, 3),
    Wording("random rounding to base 3", 1, HIDDEN, 3, RANDOM),
    Wording("All counts are randomly rounded to base 3", 1, HIDDEN, 3, RANDOM),
    Wording("base-3 random rounding", 1, HIDDEN, 3, RANDOM),
    Wording("counts are randomly rounded up or down to a multiple of 5", 1, HIDDEN, 5, RANDOM),
    Wording("RR3", 1, HIDDEN, 3, RANDOM),
    Wording("fixed random rounding to base 3, counts below 6 suppressed", 4, UNSAID, 3, RANDOM),
    Wording("cells below 6 are suppressed and the rest randomly rounded to base 3", 6, UNSAID, 3, RANDOM),
    Wording("minimum cell size 10, rounded down to a multiple of 5", 10, UNSAID, 5, DOWN),
    Wording("round up to the next multiple of 5, then suppress counts below 10", 6, UNSAID, 5, UP),
    # secondary suppression
    Wording("cells below 5 are suppressed, no secondary suppression is applied", 5),
    Wording("cells below 5 are suppressed, with secondary suppression where necessary", 5, secondary=True),
    Wording("primary and secondary suppression of counts below 5", 5, secondary=True),
    Wording("minimum cell size 10, complementary suppression is applied to protect totals", 10, secondary=True),
    Wording("counts of 1 to 4 are suppressed; secondary suppression is applied", 5, SHOWN, secondary=True),
)
