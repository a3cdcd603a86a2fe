"""The table of sabotages, by area: one line of code that carries a guarantee, what replaces it, and who must notice.

To repair an entry after a refactoring, put the new text of the line there; `scripts/sabotage --list` names entries that
do not fit.  To add one, write the line, a change that breaks a guarantee, and tests that notice it within seconds.
"""

from __future__ import annotations

from tests.sabotage.guards import GUARDS
from tests.sabotage.sabotage import Sabotage, area
from tests.sabotage.tables import TABLES

_SELECTION, _ADD, _VECTOR = "mechanisms/selection.py", "mechanisms/add_noise.py", "mechanisms/vector_noise.py"
NOISE = (
    *area(
        "noise",
        "tests/noise/test_integers.py tests/statistics/test_noise.py",
        ("noise/integers.py", "x = 1 / scale", "x = 2 / scale"),
        (
            "noise/integers.py",
            "part[:] = np.minimum(1 + geometric(words, scale, part.size), LARGEST)",
            "part[:] = np.minimum(1 + geometric(words, scale / 2, part.size), LARGEST)",
        ),
        ("noise/integers.py", "variance = 2 * scale**2", "variance = scale**2", "_accepted"),
    ),
    *area(
        "noise",
        "tests/noise/test_positioned.py",
        (
            "noise/positioned.py",
            "return cls(rate, os.urandom(KEY_BYTES), os.urandom(KEY_BYTES))",
            "return cls(rate, bytes(KEY_BYTES), os.urandom(KEY_BYTES))",
        ),
        (
            "noise/positioned.py",
            "return np.uint64((self.rate.numerator << _WORD) // self.rate.denominator)",
            "return np.uint64((self.rate.numerator << _WORD) // self.rate.denominator // 2 * 3)",
        ),
    ),
)
MECHANISMS = (
    *area(
        "mechanisms",
        "tests/mechanisms/test_add_noise.py tests/replay/test_tables.py -k add_noise_or_private-histogram",
        (_ADD, "return plus(whole, coins.laplace(self.scale, whole.size))", "return whole"),
        (
            _ADD,
            "return plus(whole, coins.gaussian(self.scale, whole.size))",
            "return plus(whole, coins.gaussian(self.scale / 2, whole.size))",
        ),
        (
            _ADD,
            'return cls(groups * sensitivity / positive(epsilon, "epsilon"), sensitivity, groups)',
            'return cls(sensitivity / positive(epsilon, "epsilon"), sensitivity, groups)',
        ),
        (_ADD, "return loss if times == 1 else Sequence((loss,) * times)", "return loss"),
    ),
    *area(
        "mechanisms",
        "tests/mechanisms/test_selection.py tests/statistics/test_selection.py",
        (_SELECTION, "return 2 * self.sensitivity / self.epsilon", "return self.sensitivity / self.epsilon"),
        (
            _SELECTION,
            "return self.sensitivity / self.epsilon",
            "return self.sensitivity / self.epsilon / 2",
            "MonotoneNoisyMax.scale",
        ),
        (
            _SELECTION,
            "return self.sensitivity / self.epsilon",
            "return 1 / self.epsilon",
            "MonotoneExponential.scale",
        ),
        (
            _SELECTION,
            "gaps = whole.max(axis=1, keepdims=True) - whole",
            "gaps = 2 * (whole.max(axis=1, keepdims=True) - whole)",
        ),
    ),
    *area(
        "mechanisms",
        "tests/mechanisms/test_vector_noise.py",
        (
            _VECTOR,
            'square = len(widths) * Fraction(rows) ** 2 / (2 * positive(rho, "rho"))',
            'square = Fraction(rows) ** 2 / (2 * positive(rho, "rho"))',
        ),
        (
            _VECTOR,
            "return ZeroConcentrated(len(self.widths) * Fraction(self.rows) ** 2 / (2 * self.scale**2))",
            "return ZeroConcentrated(len(self.widths) * Fraction(self.rows) / (2 * self.scale**2))",
        ),
        (
            _VECTOR,
            "return CubeLaw(self.widths, self.fine, self.fine * self.rows / self.epsilon)",
            "return CubeLaw(self.widths, self.fine, self.fine / self.epsilon)",
        ),
    ),
)
HISTOGRAMS = (
    *area(
        "histograms",
        "tests/replay/test_contract.py tests/replay/test_tables.py tests/methods/histograms/test_private.py -k "
        "private_or_most-common",
        (
            "methods/histograms/shared/noise.py",
            "rows = unit.max_rows * moved(unit)",
            "rows = moved(unit)",
        ),
        (
            "methods/histograms/shared/noise.py",
            "threshold = Threshold(kind(scale, unit.max_rows, unit.max_rows * moved(unit)), hidden)",
            "threshold = Threshold(kind(scale, 1, unit.max_rows * moved(unit)), hidden)",
        ),
        (
            "methods/histograms/shared/noise.py",
            "hidden = (whole / 2 if gaussian else whole) if unknown else Fraction(0)",
            "hidden = whole if unknown else Fraction(0)",
        ),
        ("methods/histograms/shared/noise.py", "row = Sampled(rate, single)", "row = Sampled(rate * rate, single)"),
        (
            "methods/histograms/shared/noise.py",
            "return Grouped(unit.max_rows, row) if unit.max_rows > 1 else row",
            "return row",
        ),
        (
            "methods/histograms/most_common.py",
            "return unit.max_rows * moved(unit) / self.scale",
            "return moved(unit) / self.scale",
        ),
        (
            "methods/histograms/most_common.py",
            "return kind(self.epsilon, unit.max_rows)",
            "return kind(2 * self.epsilon, unit.max_rows)",
        ),
    ),
)
_MOVES, _STEPS = "methods/learning/shared/moves.py", "methods/learning/shared/steps.py"
_STATISTICS, _TREES = "methods/learning/shared/statistics.py", "methods/learning/shared/tree_steps.py"
_CUTS = "mechanism, cuts = MonotoneExponential(epsilon, FINE), TreeSplits(np.zeros(0, np.int64), np.zeros(0, np.int64))"
LEARNING = (
    *area(
        "learning",
        "tests/replay/test_tables.py tests/theorems/test_learning.py -k classifier_or_regressor_or_kmeans_or_learning",
        (_MOVES, "return replaced * unit.max_rows**2 * square", "return replaced * unit.max_rows * square"),
        (
            _MOVES,
            "replaced = 1 if unit.adjacency is Adjacency.ADD_REMOVE else 2 if aligned else 4",
            "replaced = 1 if unit.adjacency is Adjacency.ADD_REMOVE else 2",
        ),
        (
            _MOVES,
            "return (1 if unit.adjacency is Adjacency.ADD_REMOVE else 2) * unit.max_rows * tables",
            "return unit.max_rows * tables",
        ),
        (_MOVES, "return square / (2 * scale**2)", "return square / (4 * scale**2)"),
        (
            _STEPS,
            "return StepGuarantee(ZeroConcentrated(rho + inner.loss.rho), tuple(reasons), inner.assumes)",
            "return StepGuarantee(ZeroConcentrated(max(rho, inner.loss.rho)), tuple(reasons), inner.assumes)",
        ),
        (
            _STEPS,
            "return self.residual**2 * (1 if self.outputs == 1 else 2) * (self.columns + 1)",
            "return self.residual**2 * (1 if self.outputs == 1 else 2) * self.columns",
        ),
        (
            _STEPS,
            "return spent(inner, self.rounds * gaussian_rho(self.scale, square), Law.GAUSSIAN.source, unit)",
            "return spent(inner, gaussian_rho(self.scale, square), Law.GAUSSIAN.source, unit)",
            "MoveCenters.around",
        ),
        (
            _STATISTICS,
            "return plus(values, draw(scale, values.size))",
            "return plus(values, draw(scale / 2, values.size))",
        ),
        (
            _STATISTICS,
            "return np.where((lengths > square)[:, None], shorter, vectors)",
            "return vectors",
        ),
        (_STATISTICS, "result[above] = noisy(total[above], scales[1], coins)", "result[above] = total[above]"),
    ),
    *area(
        "comparison",
        "tests/methods/synthesis/test_comparison.py",
        (
            "methods/synthesis/comparison.py",
            "return sum((candidate.rho for candidate in self.candidates), Fraction(0))",
            "return max(candidate.rho for candidate in self.candidates)",
        ),
        (
            "methods/synthesis/comparison.py",
            "part = largest_rho(self.epsilon, self.delta) / len(self.candidates)",
            "part = largest_rho(self.epsilon, self.delta)",
        ),
        (
            "methods/synthesis/comparison.py",
            "if place != least:",
            "if False:",
        ),
    ),
    *area(
        "trees",
        "tests/replay/test_tables.py tests/theorems/test_trees.py tests/methods/learning/test_trees.py -k "
        "tree_or_forest_or_random",
        (
            "methods/learning/shared/growth.py",
            _CUTS,
            _CUTS.replace("FINE", "FINE // 2"),
        ),
        (
            "methods/learning/shared/growth.py",
            "return FINE * (rows * rows - (counts * counts).sum(axis=-1)) // np.maximum(1, 2 * rows)",
            "return FINE * (rows * rows - (counts * counts).sum(axis=-1)) // np.maximum(1, rows)",
        ),
        (
            "methods/learning/shared/growth.py",
            "shares = dealt(times, len(forest), coins)",
            "shares = np.repeat(times[:, None], len(forest), axis=1)",
        ),
        (
            _TREES,
            "level = squared_move(unit, 1, aligned=False) * self.epsilon**2 / 8",
            "level = squared_move(unit, 1, aligned=True) * self.epsilon**2 / 16",
        ),
        (
            _TREES,
            "return spent(inner, self.trees * self.depth * level, CHOICES, unit)",
            "return spent(inner, self.depth * level, CHOICES, unit)",
        ),
        (_TREES, "return self.trees * (self.reach**2 + self.weight**2)", "return self.reach**2 + self.weight**2"),
        (_TREES, "return 1 if self.dealt else self.trees", "return 1"),
    ),
    *area(
        "stream",
        "tests/replay/test_tables.py tests/theorems/test_trees.py -k stream_or_sample_or_moves_one_sum",
        (
            "methods/learning/shared/streaming.py",
            "total += FINE * added(codes[:, column], times, size)",
            "total += 2 * FINE * added(codes[:, column], times, size)",
        ),
        (
            "methods/learning/shared/streaming.py",
            "errors = np.clip((off * FINE + SCORE // 2) // SCORE, -FINE, FINE)",
            "errors = (off * FINE + SCORE // 2) // SCORE",
        ),
        (
            "methods/learning/shared/streaming.py",
            "flat[part, output] += noisy(sums, step.scale, coins) / FINE / pace[part]",
            "flat[part, output] += sums / FINE / pace[part]",
        ),
        (
            "methods/learning/shared/streaming.py",
            "counts = self.table.engine.count(self.table.rows, cells, *self.limits, coins.sample(rate))",
            "counts = self.table.engine.count(self.table.rows, cells, *self.limits)",
        ),
        (
            _TREES,
            "return StepGuarantee(Sequence((one,) * self.rounds), reasons, assumptions(unit) | {COINS})",
            "return StepGuarantee(Sequence((one,) * (self.rounds - 1)), reasons, assumptions(unit) | {COINS})",
        ),
        (
            _TREES,
            "one = Sampled(self.rate, Gaussian(self.scale, self.residual))",
            "one = Sampled(self.rate, Gaussian(2 * self.scale, self.residual))",
        ),
        (
            _TREES,
            "if unit.max_rows > 1 or unit.adjacency is Adjacency.REPLACE:",
            "if unit.adjacency is Adjacency.REPLACE:",
        ),
    ),
    *area(
        "tuning",
        "tests/replay/test_tables.py tests/theorems/test_tuning.py tests/methods/learning/test_tuning.py -k tuning",
        (
            "methods/learning/tuning.py",
            "return int(noisy(np.array([right]), step.scale, fresh, step.noise)[0]), (candidates[place], fitted)",
            "return right, (candidates[place], fitted)",
        ),
        (
            "methods/learning/shared/trials.py",
            "return ZeroConcentrated(fits * max(loss.rho for loss in losses) + score)",
            "return ZeroConcentrated(fits * max(loss.rho for loss in losses))",
        ),
        (
            "methods/learning/shared/trials.py",
            "return ZeroConcentrated(fits * max(loss.rho for loss in losses) + score)",
            "return ZeroConcentrated(max(loss.rho for loss in losses) + score)",
        ),
        (
            "methods/learning/shared/trials.py",
            "yield self._of(every - own), self._of(own)",
            "yield self._of(every), self._of(own)",
        ),
        ("methods/learning/shared/trials.py", "if coins.below(number, 1)[0] == 0:", "if True:"),
    ),
    *area(
        "tuning",
        "tests/methods/learning/test_sensitivities.py",
        ("methods/learning/tuning.py", "closeness = _CLOSENESS if outputs is None else None", "return None"),
    ),
    *area(
        "searches",
        "tests/learn/test_search.py",
        ("workflows/release/tables.py", "if terms.searched:", "if False:"),
        ("learn/search.py", "if cost.epsilon > left:", "if False:"),
        (
            "core/steps/around.py",
            "Precondition(condition.term, Status.NOT_MET) if condition.term == ONCE else condition",
            "condition",
        ),
    ),
)
_SEARCH, _BUDGET = "methods/synthesis/marginals/search.py", "methods/synthesis/marginals/budget.py"
_EVALUATION, _MARGINALS = "methods/synthesis/marginals/evaluation.py", "methods/synthesis/marginals/method.py"
SYNTHESIS = (
    *area(
        "synthesis",
        "tests/replay/test_tables.py tests/theorems/test_models.py -k marginals_or_tree-_or_models",
        (
            _SEARCH,
            "sensitivity = self.reach.score * max(allowed.values())",
            "sensitivity = self.reach.score",
        ),
        (
            _SEARCH,
            "return NoisyTable(columns, counts + noise, float(scale))",
            "return NoisyTable(columns, counts, float(scale))",
        ),
        (
            _SEARCH,
            "select = Exponential(epsilon, self.reach.score)",
            "select = Exponential(2 * epsilon, self.reach.score)",
        ),
        (
            _BUDGET,
            "return cls(twice * unit.max_rows**2, twice * unit.max_rows)",
            "return cls(twice * unit.max_rows, twice * unit.max_rows)",
        ),
        (_BUDGET, "return tables * reach.table / (2 * scale**2)", "return reach.table / (4 * scale**2)"),
        (_BUDGET, "return epsilon**2 / 8", "return epsilon**2 / 80"),
        (
            _EVALUATION,
            "scale = gaussian_scale(self.rho * EVALUATION, 1, Sensitivity((len(pairs) * self.reach.score) ** 2, 1))",
            "scale = gaussian_scale(self.rho * EVALUATION, 1, Sensitivity(self.reach.score**2, 1))",
        ),
        (
            _EVALUATION,
            "noisy = sum(map(self.away, pairs)) + coins.gaussian(scale, 1).tolist()[0]",
            "noisy = sum(map(self.away, pairs))",
        ),
        (
            _EVALUATION,
            "scale = gaussian_scale(self.rho * EVALUATION, len(tables), Sensitivity(self.reach.score**2, 1))",
            "scale = gaussian_scale(self.rho * EVALUATION, 1, Sensitivity(self.reach.score**2, 1))",
        ),
        (_MARGINALS, "noisy = dense + coins.gaussian(scale, len(dense))", "noisy = dense"),
    ),
    *area(
        "synthetic values",
        "tests/methods/synthesis/marginals/test_detail.py tests/methods/synthesis/marginals/test_constraints.py "
        "tests/methods/synthesis/marginals/test_patterns.py tests/methods/synthesis/marginals/test_weekdays.py "
        "tests/methods/synthesis/marginals/test_rare.py",
        (
            _BUDGET,
            "return tuple(gaussian_scale(rho * root / sum(roots), 1, reach) for root in roots)",
            "return tuple(gaussian_scale(rho * root / max(roots), 1, reach) for root in roots)",
        ),
        (
            "methods/synthesis/marginals/rare.py",
            "places.append(np.where(hidden, number - hidden.sum(), np.cumsum(~hidden) - 1))",
            "places.append(np.where(hidden, 0, np.cumsum(~hidden) - 1))",
        ),
        (_SEARCH, "if rare.sizes != rare.widths:", "if False:"),
        (
            "methods/synthesis/marginals/check.py",
            "if not on_declared_days(values, numbers[column.name]):",
            "if False:",
        ),
        (
            "methods/synthesis/linked/output.py",
            "if not on_declared_days(values, numbers[title]):",
            "if False:",
        ),
        (
            "methods/synthesis/marginals/declared.py",
            "return cls((*zeros, *day_zeros(classes)), numbers)",
            "return cls(zeros, numbers)",
        ),
        (
            _MARGINALS,
            "scale = gaussian_scale(rho, len(pieces), reach)",
            "scale = gaussian_scale(rho, 1, reach)",
        ),
        (
            _MARGINALS,
            "scale = gaussian_scale(self.detail_rho(patterns)[1], len(patterns), reach)",
            "scale = gaussian_scale(self.detail_rho(patterns)[1], 1, reach)",
        ),
        (
            _MARGINALS,
            "return (detail * (1 - PATTERNS), detail * PATTERNS) if patterns else (detail, Fraction(0))",
            "return (detail, detail * PATTERNS) if patterns else (detail, Fraction(0))",
        ),
        (
            "methods/synthesis/marginals/check.py",
            "if problem := _patterns_problem(measure, model):",
            "if problem := None:",
        ),
        (
            _MARGINALS,
            "return (1 - self.scope.share - (self.detail if pieces else 0)) * self.rho",
            "return (1 - self.scope.share) * self.rho",
        ),
        (
            "methods/synthesis/marginals/declared.py",
            "never[tuple(slice(len(low)) for low, _ in ends)] = ~constraint.possible(ends)",
            "never[tuple(slice(len(low)) for low, _ in ends)] = False",
        ),
    ),
)
_LINKED = "methods/synthesis/linked"
LINKED = (
    *area(
        "linked",
        "tests/replay/test_linked.py tests/theorems/test_linked_tables.py",
        (f"{_LINKED}/rows.py", "return np.sort(order[number < at_most])", "return np.sort(order)"),
        (
            f"{_LINKED}/rows.py",
            "chosen = limited(person, ranks, child.max_rows, child.more, coins)",
            "chosen = limited(person, ranks, child.max_rows + 1, child.more, coins)",
        ),
        (
            f"{_LINKED}/levels.py",
            "weights: NDArray[np.int64] = (WHOLE // np.array(caps(max_rows)))[classes]",
            "weights: NDArray[np.int64] = np.full(len(classes), WHOLE)",
        ),
        (
            f"{_LINKED}/levels.py",
            "numbers = np.bincount(rows.person, minlength=1)[rows.person]",
            "numbers = np.bincount(rows.parent, minlength=1)[rows.parent]",
        ),
        (
            f"{_LINKED}/synthesis.py",
            "return Sensitivity(twice * level.weight**2, twice * level.weight)",
            "return Sensitivity(twice * level.weight, twice * level.weight)",
        ),
        (
            f"{_LINKED}/synthesis.py",
            "return Sensitivity(twice * level.weight**2, twice * level.weight)",
            "return Sensitivity(twice * level.weight**2, 1)",
        ),
        (
            f"{_LINKED}/synthesis.py",
            "return Shares.of(spendable * self.rho, tables, self.rounds, reach, self.one)",
            "return Shares.of(2 * self.rho, tables, self.rounds, reach, self.one)",
        ),
        (
            f"{_LINKED}/synthesis.py",
            "scale = gaussian_scale(work.detail_rho[0], len(work.pieces), reach)",
            "scale = gaussian_scale(work.detail_rho[0], len(work.pieces), Sensitivity(1, 1))",
        ),
        (
            f"{_LINKED}/synthesis.py",
            "scale = gaussian_scale(work.detail_rho[1], len(work.patterns), reach)",
            "scale = gaussian_scale(work.detail_rho[1], len(work.patterns), Sensitivity(1, 1))",
        ),
    ),
    *area(
        "linked",
        "tests/contract/test_linked.py",
        (f"{_LINKED}/steps.py", "more = {OWNED, *([SINGLE_OWNER] if self.by_row_id else [])}", "more = {OWNED}"),
        (
            f"{_LINKED}/output.py",
            "if any(cost > level.rho for cost, level in zip(costs, measure.levels, strict=True)):",
            "if False:",
        ),
        (f"{_LINKED}/output.py", "if _misstated(evidence, measure):", "if False:"),
        (f"{_LINKED}/output.py", 'if not all(map(_begun, measure.levels, evidence["tables"])):', "if False:"),
        (
            f"{_LINKED}/synthesis.py",
            "spendable = 1 - EVALUATION - (self.detail if self.pieces else 0)",
            "spendable = 1 - EVALUATION",
        ),
        (
            "workflows/release/linked.py",
            "rows[0] = DividedRows(rows[0], held_out)",
            "rows[0] = rows[0]",
        ),
        (
            f"{_LINKED}/output.py",
            "if np.bincount(people[own.name], minlength=1).max() > own.max_rows:",
            "if False:",
        ),
        (
            f"{_LINKED}/output.py",
            "if parents is None or (rows and not (foreign.min() >= 1 and foreign.max() <= len(parents))):",
            "if parents is None:",
        ),
    ),
    *area(
        "linked",
        "tests/workflows/consent/test_linked.py",
        (
            "workflows/consent/snapshot.py",
            "admitted[child.name] = engine.admitted(rows, people)",
            "admitted[child.name] = rows",
        ),
        (
            "workflows/consent/snapshot.py",
            "admitted = {schema.name: engine.admitted(tables[0], consent.by(person_column(policy)))}",
            "admitted = {schema.name: tables[0]}",
        ),
        (
            "workflows/release/linked.py",
            "rows = [*taking_part_linked(engine, sources, policy, order.background.consent)]",
            "rows = [*sources]",
        ),
        (
            "workflows/release/prepare.py",
            "if policy.gate is not None and (consent is None or not consent.gate.settled):",
            "if False:",
        ),
    ),
    *area(
        "linked",
        "tests/methods/synthesis/linked/test_linked.py -k cannot_be_linked",
        ("workflows/policy/columns.py", 'if person is None and section.more == "refuse":', "if False:"),
    ),
)
RUNNING = area(
    "series",
    "tests/workflows/series/test_series.py",
    (
        "workflows/release/running.py",
        "other_key = next((label for label, own in stored.items() if own != mark), None)",
        "other_key = None",
    ),
    (
        "workflows/release/running.py",
        "hidden = next((release for release in finished if release.certificate.id in runs), None)",
        "hidden = None",
    ),
    ("workflows/series/series.py", "if not series.policy.lists_people:", "if True:"),
    (
        "workflows/release/prepare.py",
        "allowed = keyed if counted is None else engine.admitted(keyed, counted)",
        "allowed = keyed",
    ),
    ("workflows/release/running.py", "if own[0] != label:", "if False:"),
    (
        "verifier/judge.py",
        "whole = guarantee.loss if _runs(certificate) else Sequence((guarantee.loss,) * step.composed)",
        "whole = guarantee.loss",
    ),
    (
        "core/steps/periods.py",
        "return self.releases - size + min(size, self.participations or size)",
        "return min(size, self.participations or size)",
    ),
    (
        "workflows/release/prepare.py",
        "if policy.schema[name].type is Type.DATE and pa.types.is_timestamp(stored) and stored.tz is not None:",
        "if False:",
    ),
    ("verifier/judge.py", "if not all(amount.is_finite() for amount in spent):", "if False:"),
    ("methods/histograms/continual/steps.py", "if unit.adjacency is not Adjacency.ADD_REMOVE:", "if False:"),
)
DOORS = area(
    "estimators",
    "tests/learn/test_estimators.py",
    (
        "learn/rows.py",
        'return np.asarray(values) if hasattr(values, "__array__") else np.asarray(values, dtype=object)',
        "return np.asarray(values)",
    ),
)
INTERVALS = area(
    "learning",
    "tests/methods/learning/test_inference.py",
    (
        "methods/learning/shared/interval_check.py",
        "if publish is None or publish.model is not ModelForm.LINEAR or model.trees or model.bounds is None:",
        "if False:",
    ),
    ("methods/learning/shared/interval_check.py", "if not _same_line(model, inference):", "if False:"),
    (
        "methods/learning/shared/interval_check.py",
        "if np.any(np.sqrt(spread[:-1]) < (1 - _CLOSE) * _least_widths(statement, model, inference)):",
        "if False:",
    ),
)
_TABULAR = (*NOISE, *MECHANISMS, *HISTOGRAMS, *LEARNING, *SYNTHESIS)
SABOTAGES: tuple[Sabotage, ...] = (*_TABULAR, *LINKED, *RUNNING, *DOORS, *INTERVALS, *TABLES, *GUARDS)
