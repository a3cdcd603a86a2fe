"""Sabotages of protected tables: rules, attackers, proofs, lists, what verify looks at; and of judging others."""

from __future__ import annotations

from tests.sabotage.sabotage import area

_HERE, _TESTS = "methods/tabulation/protected", "tests/methods/tabulation"
_RULES, _SOURCES, _JOINT = f"{_HERE}/rules.py", f"{_HERE}/sources.py", f"{_HERE}/joint.py"
_ASSEMBLY, _COALITIONS = f"{_HERE}/assembly.py", f"{_HERE}/coalitions.py"
_SUPPRESSION, _ATTACKER, _OUTPUT = f"{_HERE}/suppression.py", f"{_HERE}/attacker.py", f"{_HERE}/output.py"
_TASK = f"{_HERE}/task.py"
_METHOD, _DIFFERENCES = f"{_HERE}/method.py", "workflows/release/differences.py"
_CLOSE = 'return Problem("an empty cell can be inferred too closely") if np.any(largest - smallest < width) else None'
_CHECK = "workflows/check/published"
TABLES = (
    *area(
        "protected tables",
        f"{_TESTS}/test_protected_table.py -k adjusted",
        (_OUTPUT, "ruled = suppressed or basis.find(AdjustCells)", "ruled = suppressed"),
    ),
    *area(
        "protected tables",
        f"{_TESTS}/test_proof.py",
        (_SUPPRESSION, "suppressed[changed.indices] = True", "suppressed[changed.indices[:0]] = True"),
        (
            _SUPPRESSION,
            "if np.any(task.weights[suppressed] >= NEVER) or not inside.all():",
            "if not inside.all():",
        ),
        (
            _SUPPRESSION,
            "if np.any(task.weights[suppressed] >= NEVER) or not inside.all():",
            "if np.any(task.weights[suppressed] >= NEVER):",
        ),
        (_SUPPRESSION, "if task.floors is not None and np.any(least[task.floors] < 1):", "if False:"),
        (_SUPPRESSION, "if amount != move.amount:", "if False:"),
        (
            _SUPPRESSION,
            "if owners.breach(demand.cell, proofs, partial(task.need, demand, amount)) is not None:",
            "if not proofs:",
        ),
    ),
    *area(
        "protected tables",
        f"{_TESTS}/test_coalitions.py {_TESTS}/test_proof.py",
        (_COALITIONS, "for many in range(1, size + 1):", "for many in range(1, size):"),
        (_COALITIONS, "if least <= 0 or (own and own <= coalition):", "if least <= 0 or own:"),
        (
            _COALITIONS,
            "stack += {coalition | part for part in fewest if len(coalition | part) <= self.size}",
            "stack += {coalition | part for part in fewest if len(coalition | part) < self.size}",
        ),
        (
            _ASSEMBLY,
            "owners = owners.only(stated, None if joint.alone else joint.frame)",
            "owners = owners.only(stated)",
        ),
        (
            _ASSEMBLY,
            "return replace(demand, down=min(demand.up, int(cells[demand.cell]) - least), parts=parts)",
            "return replace(demand, down=0, parts=parts)",
        ),
        (_TASK, "return amount if amount > 0 else min(-amount, self._above(demand, coalition))", "return amount"),
        (
            _ASSEMBLY,
            "return replace(task, truth=task.truth - low, low=low - low, high=high - low), within",
            "return replace(task, truth=task.truth - low, low=low - low, high=low - low - 1), within",
        ),
        (
            _ASSEMBLY,
            "demands[cell] = ProtectionDemand(cell, int(down[place]), int(up[place]))",
            "demands.setdefault(0 * cell, ProtectionDemand(cell, int(down[place]), int(up[place])))",
        ),
    ),
    *area(
        "protected tables",
        f"{_TESTS}/test_rules.py {_TESTS}/test_protected_table.py tests/theorems/test_tables.py",
        (
            _RULES,
            "few = (facts.contributors > 0) & (facts.contributors < self.minimum)",
            "few = (facts.contributors > 0) & (facts.contributors < self.minimum - 1)",
        ),
        (
            _RULES,
            "wide = max(wide, self.p / (self.q or 1) * largest[0] - (value - largest[0] - largest[1]))",
            "wide = max(wide, self.p * largest[0] - (value - largest[0] - largest[1]))",
        ),
        (
            _RULES,
            "wide = max(wide, self.p / (self.q or 1) * largest[0] - (value - largest[0] - largest[1]))",
            "wide = max(wide, self.p / (self.q or 1) * largest[0] - (value - largest[0]))",
        ),
        (
            _RULES,
            "np.add.at(gross, apart[0], np.abs(apart[1]) * apart[2])",
            "np.add.at(gross, apart[0], apart[1] * apart[2])",
        ),
        (
            _RULES,
            "merged = _merged(cells[named], holders[named], amounts[named] * rows[named])",
            "merged = (cells[named], amounts[named] * rows[named])",
        ),
        (
            _SOURCES,
            "rows, amounts = np.ones(len(places), np.int64), _weighted(places, amounts.astype(np.float64) * weights)",
            "rows = np.ones(len(places), np.int64)",
        ),
        (_SOURCES, "if not np.all(weights[:-1] >= 0):", "if False:"),
    ),
    *area(
        "protected tables",
        f"{_TESTS}/test_linked_tables.py {_TESTS}/test_informed_reader.py",
        (_ASSEMBLY, "weights[joint.before] = NEVER", "pass"),
        (_ASSEMBLY, "floors[self.joint.empty] = True", "pass"),
        (
            _ASSEMBLY,
            'low = np.minimum(flat, int(self.joint.alone and self.marks.zeros == "published"))',
            "low = np.minimum(flat, 0)",
        ),
        (
            _ASSEMBLY,
            "off = np.array([abs(int(value)) * prior.numerator // prior.denominator for value in flat], np.int64)",
            "off = np.array([1 + abs(int(value)) * prior.numerator // prior.denominator for value in flat], np.int64)",
        ),
        (
            _DIFFERENCES,
            "missing = [place for place, digest in files if digest not in protection.earlier]",
            "missing = []",
        ),
        (_DIFFERENCES, "if mixed:", "if False:"),
        (_DIFFERENCES, "if _same_table(new, release):", "if False:"),
        (_DIFFERENCES, "if since:", "if False:"),
    ),
    *area(
        "protected tables",
        f"{_TESTS}/test_table_list.py",
        (
            _DIFFERENCES,
            "for file in tables_of(certificate)[: len(made.tables)]:",
            "for file in tables_of(certificate)[:1]:",
        ),
        (
            _METHOD,
            "seen = ~pattern.suppressed[own].reshape(part.values.shape)",
            "seen = np.ones(part.values.shape, np.bool_)",
        ),
        (_ASSEMBLY, "floors[self.joint.own] = True", "floors[self.joint.own] = False"),
        (_ATTACKER, "if empty & published.keys():", "if False:"),
        (_ATTACKER, "if published.setdefault(cell, value) != value:", "if False:"),
        (
            _JOINT,
            "parts = tuple(cells_within(frame, part) for part in own)",
            "parts = tuple(cells_within(frame, own[0]) for _ in own)",
        ),
    ),
    *area(
        "protected tables",
        f"{_TESTS}/test_informed_reader.py {_TESTS}/test_table_list.py {_TESTS}/test_rules.py",
        (
            _ATTACKER,
            "low = np.where(np.isin(self.cross.leaves, self.empty), least, 0).astype(np.int64)",
            "low = np.zeros(len(self.cross.leaves), np.int64)",
        ),
        (_OUTPUT, _CLOSE, "return None"),
    ),
    *area(
        "published tables",
        "tests/workflows/check/test_layouts.py tests/workflows/check/test_published.py",
        (f"{_CHECK}/arrangement.py", "there &= ~table.absent[grid]", "pass"),
        (
            f"{_CHECK}/arrangement.py",
            "for reach in (unit, 2 * (unit - 1)) if whole else (unit,):  # in halves",
            "for reach in (0,):",
        ),
        (
            f"{_CHECK}/reading.py",
            "return replace(table, low=np.where(~table.visible & (low == 0), _NO_LEAST, low))",
            "return table",
        ),
        (
            f"{_CHECK}/judging.py",
            "return not self.disclosed and not self.small and not self.odd and not self.shares",
            "return not self.disclosed and not self.small and not self.odd",
        ),
        (f"{_CHECK}/layout.py", 'if not exact(count) and exact((share or "").replace("%", "")):', "if False:"),
        (f"{_CHECK}/lines.py", "whole = bool(self.add_up(line, own))", "whole = True"),
    ),
)
