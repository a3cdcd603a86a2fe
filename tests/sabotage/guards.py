"""Sabotages of accountants, ledger, consent, queries, crowds, graphs, surveys and the verifier."""

from __future__ import annotations

from tests.sabotage.sabotage import area

_CONCENTRATED, _ACCOUNTANT = "accounting/concentrated.py", "accounting/accountant.py"
_ADDITIVE, _AMPLIFICATION = "accounting/additive.py", "accounting/amplification.py"
ACCOUNTANTS = (
    *area(
        "accountant",
        "tests/accounting/test_accountant.py tests/accounting/test_concentrated.py tests/accounting/test_additive.py "
        "tests/accounting/test_people.py",
        (
            _CONCENTRATED,
            "return Fraction(sensitivity) ** 2 / (2 * scale**2)",
            "return Fraction(sensitivity) / (2 * scale**2)",
        ),
        (
            _CONCENTRATED,
            "return None if single is None else size**2 * single",
            "return None if single is None else size * single",
        ),
        (
            _CONCENTRATED,
            "return _together(parts, adjacency, lambda rhos: sum(rhos, Fraction(0)))",
            "return _together(parts, adjacency, lambda rhos: max(rhos, default=Fraction(0)))",
        ),
        (_CONCENTRATED, "return epsilon**2 / 2, delta", "return epsilon**2 / 2, Fraction(0)"),
        (
            _CONCENTRATED,
            "return alpha * rho_above - (log_alpha + log_delta) / excess - math.log1p(1.0 / excess)",
            "return rho_above - (log_alpha + log_delta) / excess - math.log1p(1.0 / excess)",
        ),
        (
            _ACCOUNTANT,
            "return LossBound(epsilon_of_rho(rho, delta - hidden), (LossRule.CONCENTRATED,))",
            "return LossBound(epsilon_of_rho(rho, delta), (LossRule.CONCENTRATED,))",
        ),
        (
            _ADDITIVE,
            "weights = np.maximum(0.0, -np.expm1(2.0 * outcomes * inverse * (1.0 - _ULPS) - gap))",
            "weights = np.maximum(0.0, -np.expm1(3.0 * outcomes * inverse * (1.0 - _ULPS) - gap))",
        ),
        (
            "accounting/people.py",
            "return row_log_delta(epsilon / rows) + step * (rows - 1) + math.log(falling)",
            "return row_log_delta(epsilon / rows) + math.log(falling)",
        ),
    ),
    *area(
        "accountant",
        "tests/theorems/test_tuning.py",
        (
            _CONCENTRATED,
            'apart = exact(delta, "delta") / Fraction(expected_runs(gamma))',
            'apart = exact(delta, "delta")',
        ),
        (
            _CONCENTRATED,
            "return not_below((order - 1.0) * above + law / order, _ROUNDING)",
            "return not_below((order - 1.0) * above, _ROUNDING)",
        ),
    ),
    *area(
        "accountant",
        "tests/accounting/test_amplification.py tests/accounting/test_accountant.py tests/theorems/test_shuffling.py",
        (
            _ACCOUNTANT,
            "return LossBound(float_up(rate) * inside.value * (1.0 + 1e-15), (*inside.rule, LossRule.AMPLIFIED))",
            "return LossBound(float_up(rate) ** 2 * inside.value * (1.0 + 1e-15), (*inside.rule, LossRule.AMPLIFIED))",
        ),
        (_AMPLIFICATION, "chance = 2.0 / (p + 1.0)", "chance = 4.0 / (p + 1.0)", "shuffled_delta"),
        (_AMPLIFICATION, "if adjacency is not Adjacency.ADD_REMOVE:", "if adjacency is None:"),
    ),
    *area(
        "accountant",
        "tests/accounting/suppression tests/theorems/test_li_2010.py",
        (
            "accounting/suppression/tight_delta.py",
            "return log_replace(cell, ratio.epsilon, _checked(population))",
            "return cell.log_worst(ratio, _checked(population))",
        ),
        (
            "accounting/suppression/tight_delta.py",
            "two_steps = cell.log_worst(half, population) + factor * (1.0 + _SLACK)",
            "two_steps = cell.log_worst(half, population)",
        ),
    ),
    *area(
        "slow accountant",
        "tests/verifier",
        (
            "verifier/slow_accountant/derivation.py",
            "return Derived(float(rate) * inside.delta) if inside is not None and inside.whole else None",
            "return Derived(float(rate) ** 2 * inside.delta) if inside is not None and inside.whole else None",
        ),
        (
            "verifier/slow_accountant/derivation.py",
            "return Derived(min(1.0, single.delta * times))",
            "return Derived(min(1.0, single.delta))",
        ),
        (
            "verifier/slow_accountant/derivation.py",
            "return self.answer(Sequence((loss.inner, loss.inner)))",
            "return self.answer(loss.inner)",
        ),
        (
            "verifier/slow_accountant/noise.py",
            "over = moved - math.exp(min(epsilon, 700.0)) * law",
            "over = moved - math.exp(min(2 * epsilon, 700.0)) * law",
        ),
        (
            "verifier/slow_accountant/noise.py",
            "return min(1.0, mean * concentrated_delta(rho, epsilon - least))",
            "return min(1.0, concentrated_delta(rho, epsilon - least))",
        ),
        (
            "verifier/slow_accountant/derivation.py",
            "return float(hidden) + len(curves) * single.delta if single is not None and single.whole else None",
            "return len(curves) * single.delta if single is not None and single.whole else None",
        ),
    ),
)
_CHARGING = "accounting/ledger/charging.py"
LEDGER = (
    area(
        "ledger",
        "tests/accounting/ledger",
        (_CHARGING, "if need.within(left):", "if need.within(limit):"),
        (
            _CHARGING,
            "spent = totals.spent.plus(need)",
            "spent = need",
        ),
        (_CHARGING, "if total > limit:", "if need > limit:"),
        (
            _CHARGING,
            "if any(values(key) for key in samples):",
            "if all(values(key) for key in samples) and samples and False:",
        ),
        (_CHARGING, "if terms.closed:", 'if terms.closed == "retired":'),
        (_CHARGING, "if not guaranteed.protects_as(unit):", "if guaranteed.kind is not unit.kind:"),
        (_CHARGING, "if budget is None or budget.unbounded is None:", "if budget is None:"),
        (
            _CHARGING,
            "return totals.everyone.plus(totals.most if payer.analyst is None else payer.own.spent)",
            "return totals.most if payer.analyst is None else payer.own.spent",
        ),
        (
            _CHARGING,
            "if allowance is not None and allowance.until is not None and payer.at[:10] > allowance.until.isoformat():",
            "if allowance is not None and allowance.until is not None and payer.at[:4] > allowance.until.isoformat():",
        ),
        (_CHARGING, "if left is not None and need.epsilon > left:", "if left is not None and left == 0:"),
        (_CHARGING, "return self.at[:7]", "return self.at[:10]"),
        ("store/chain.py", "check_totals(reader, self.tally)", "pass"),
        ("store/chain.py", "require_here(reader, self.database.address)", "pass"),
        ("accounting/ledger/ledger.py", "require_here(reader, self.chain.database.address)", "pass"),
        (
            "store/move.py",
            "if [row.hash for row in rows[:1]] != [last.hash] or [row.kind for row in rows[1:]] != [ARRIVED]:",
            "if not rows:",
        ),
        (
            "workflows/policy/ledger_stores.py",
            "if ledger.moved_to() is not None and not unfinished and _is_missing(target):",
            "if False:",
        ),
        (
            "store/verify.py",
            "if (link.kind == ARRIVED) != (self.last is not None and self.last.kind == MOVED):",
            "if False:",
        ),
    )
    + area(
        "ledger",
        "tests/store/test_renewal.py",
        (
            "store/chain_entry.py",
            "place = len(self.renewals) if sequence is None else bisect_left(self._starts, sequence)",
            "place = 0",
        ),
        (
            "store/index.py",
            "if not pointers or [one.following for one in pointers] != [other.key for other in ends]:",
            "if not pointers:",
        ),
        ("store/verify.py", "if len(secret_of(link.body)) != SECRET_BYTES:", "if False:"),
    )
    + area(
        "ledger",
        "tests/accounting/ledger/test_ledger.py -k sample",
        (_CHARGING, 'if values(("sample", root, THE_ROWS)):', "if False:"),
    )
)
CONSENT = area(
    "consent",
    "tests/governance/consent tests/theorems/test_consent.py",
    (
        "governance/consent/state.py",
        "stands &= (newest == NONE) | (newest < grants[depth])",
        "stands &= (newest == NONE) | (newest <= grants[depth])",
    ),
    ("governance/consent/state.py", "stands = grants[0] != NONE", "stands = grants[0] == grants[0]"),
    (
        "governance/consent/state.py",
        "newest = np.maximum(newest, np.where(linked & (numbers != NONE), alike, NONE))",
        "pass",
    ),
    ("governance/consent/state.py", "about &= (starts <= self._valid) & (gives | ~over)", "about &= gives | ~over"),
    (
        "governance/consent/state.py",
        "grants = np.where(newest[0 : 2 * depths : 2] > ended, newest[0 : 2 * depths : 2], NONE)",
        "grants = newest[0 : 2 * depths : 2]",
    ),
    ("governance/consent/state.py", "if recorded > self.as_of.recorded:", "if False:"),
    ("governance/consent/event.py", "if not self.against or not self.at.endswith(_MIDNIGHT):", "if self.against:"),
    (
        "governance/consent/fhir.py",
        "pauses = tuple(_pauses(resource, reading or FhirReading())) if skip.narrows else ()",
        "pauses = ()",
    ),
    ("governance/consent/fhir.py", "at = min(_last(text), reading.now) if text else reading.now", "at = _first(text)"),
) + area(
    "consent",
    "tests/engines/local tests/theorems/test_consent.py -k consent",
    (
        "engines/local/views.py",
        "mask = np.logical_and.reduce([self.admitted.of(batch.column(name)) for name in people])",
        "mask = np.logical_or.reduce([self.admitted.of(batch.column(name)) for name in people])",
    ),
    (
        "engines/local/views.py",
        "mask: NDArray[np.bool_] = np.append(chosen, np.False_)[codes]",
        "mask: NDArray[np.bool_] = np.append(chosen, np.True_)[codes]",
    ),
    ("core/steps/around.py", "if unit.adjacency is Adjacency.REPLACE:", "if False:"),
)
_NOISE = "queries/measuring/noise.py"
_THRESHOLD = (
    "return CountThreshold(alone + law.reach(statistics.counting, delta / workload.contribution.groups), delta)"
)
QUERIES = (
    *area(
        "queries",
        "tests/queries/test_measurement.py tests/replay/test_questions.py tests/queries/test_steps.py "
        "tests/queries/measuring/test_sensitivity.py",
        (
            _NOISE,
            "statistics, share = workload.statistics, epsilon / workload.parts",
            "statistics, share = workload.statistics, epsilon",
        ),
        (
            _NOISE,
            _THRESHOLD,
            "return CountThreshold(alone + law.reach(statistics.counting, delta), delta)",
        ),
        (
            _NOISE,
            _THRESHOLD,
            "return CountThreshold(law.reach(statistics.counting, delta / workload.contribution.groups), delta)",
        ),
        (
            _NOISE,
            "rho = largest_rho(part * len(statistics.all), delta - hidden)",
            "rho = largest_rho(part * len(statistics.all), delta)",
        ),
        (
            "queries/measuring/statistics.py",
            "reach = query.contribution.groups if only_people else query.contribution.rows",
            "reach = 1 if only_people else query.contribution.rows",
        ),
        ("queries/language/joins.py", "return most * many", "return most"),
        (
            "queries/measuring/statistics.py",
            "below = exp.If(this=exp.LT(this=x, expression=_whole(low)), true=_whole(-grid.width))",
            "below = exp.If(this=exp.LT(this=x, expression=_whole(low)), true=_whole(-2 * grid.width))",
        ),
        (
            "queries/steps/query.py",
            "if parts.sums is not None and parts.sums.rows != (self.groups if parts.sums.people else self.rows):",
            "if parts.sums is not None and parts.sums.rows > (self.groups if parts.sums.people else self.rows):",
        ),
    ),
    *area(
        "periods of queries",
        "tests/workflows/query/test_periods.py tests/queries/language/test_restriction.py",
        (
            "queries/language/tables.py",
            "return sql.select(columns, _table(held), sql.every(inside))",
            "return sql.select(columns, _table(held), sql.every(inside[1:]))",
        ),
        (
            "queries/language/restriction.py",
            'padded = any(join.args.get("side") for join in joins)',
            "padded = False",
        ),
        (
            "queries/language/restriction.py",
            "return all(side.find(exp.Column) is not None for leaf in leaves for side in _comparisons(leaf))",
            "return all(leaf.find(exp.Column) is not None for leaf in leaves)",
        ),
        (
            "queries/language/restriction.py",
            "return left[0].this if left and kind is exp.And else None",
            "return left[0].this if left else None",
        ),
        (
            "accounting/ledger/periods.py",
            "sets |= _charged_to(values, root, label, need, None if charge is None else charge.span)",
            "sets = _charged_to(values, root, label, need, None if charge is None else charge.span)",
        ),
    ),
    *area(
        "periods of queries",
        "tests/workflows/query/test_ready_rows.py -k periods",
        (
            "workflows/query/tables.py",
            "relations.append(replace(relation, ready=place.ready, by_period=by_period is not None))",
            "relations.append(replace(relation, ready=place.ready))",
        ),
        (
            "queries/language/tables.py",
            "return own_rows(query, names, most, _decimals(relation, used), by=(PERSON, _PERIOD))",
            "return own_rows(query, names, most, _decimals(relation, used))",
        ),
        (
            "queries/language/tables.py",
            "return first_rows(query, [PERSON, _PERIOD], [sql.column(PERSON)], most + 1)",
            "return first_rows(query, [PERSON, _PERIOD], [sql.column(PERSON)], most)",
        ),
        (
            "queries/work.py",
            "rows = (rows + (relation.unit.more is not None)) * len(relation.days.periods)",
            "rows = 0 * len(relation.days.periods)",
        ),
    ),
    *area(
        "query planner",
        "tests/queries/test_batch.py",
        (
            "queries/batch.py",
            "yield share, Fraction(0) if query.public_keys else delta / unknown",
            "yield share, Fraction(0) if query.public_keys else delta",
        ),
        (
            "queries/batch.py",
            "rho = largest_rho(terms.epsilon or Fraction(0), terms.delta - hidden)",
            "rho = largest_rho(terms.epsilon or Fraction(0), terms.delta)",
        ),
        (
            "queries/batch.py",
            "return [Fraction(part, sum(parts)) for part in parts]",
            "return [Fraction(1) for part in parts]",
        ),
        ("queries/steps/query.py", "losses[0] if len(losses) == 1 else Sequence(losses),", "losses[0],"),
    ),
    *area(
        "classical",
        "tests/queries/test_classical_answers.py tests/queries/test_classical_audit.py",
        (
            "queries/classical_answers.py",
            "if not self.k <= len(query.values) <= query.size - self.k:",
            "if not self.k <= len(query.values):",
        ),
        (
            "queries/classical_answers.py",
            "return frozenset(pivot for pivot, vector in self.after(places).basis if len(vector) == 1)",
            "return frozenset(pivot for pivot, vector in self.basis if len(vector) == 1)",
        ),
        (
            "queries/classical_answers.py",
            'loss = Syntactic(f"classical answer by {self.protection}", self.parameters)',
            "loss = inner.loss",
        ),
    ),
)
CROWDS = (
    *area(
        "crowds",
        "tests/replay/test_crowds.py -k safe-k_or_safe-rate_or_histogram-k_or_slicing-k_or_points-noisy_or_points-supp",
        (
            "methods/anonymity/safe.py",
            "counts = table.engine.count(table.rows, cells, *filters, at_least=k).at_least(k)",
            "counts = table.engine.count(table.rows, cells, *filters, at_least=k - 1).at_least(k - 1)",
        ),
        (
            "methods/anonymity/safe.py",
            "filters.append(coins.sample(self.parameters(unit).rate))",
            "pass",
        ),
        (
            "methods/histograms/suppressed.py",
            "counts = partition.count(table, coins, self.sampled_at(table.schema.unit), at_least=k)",
            "counts = partition.count(table, coins, self.sampled_at(table.schema.unit), at_least=1)",
        ),
        (
            "methods/histograms/blended.py",
            "noisy, exact = kind(k, self.noise_epsilon).release(counts, coins), counts >= k",
            "noisy, exact = kind(k // 2, self.noise_epsilon).release(counts, coins), counts >= k",
        ),
        (
            "methods/synthesis/points/method.py",
            "at_least = k if self.noise is None else 1",
            "at_least = 1",
        ),
    ),
)
GRAPHS = area(
    "graphs",
    "tests/replay/test_graphs.py tests/replay/test_answers.py tests/theorems/test_graphs.py -k graph_or_pairs",
    (
        "methods/graphs/block_model.py",
        "noisy = counts + coins.laplace(1 / self.epsilon, len(counts))",
        "noisy = counts",
    ),
    (
        "methods/graphs/degree_distribution.py",
        "scale = Fraction(2 if self.bound is None else 2 * self.bound + 1) / self.epsilon",
        "scale = Fraction(2 if self.bound is None else self.bound + 1) / self.epsilon",
    ),
    (
        "methods/graphs/degree_distribution.py",
        "return Fraction(2 if self.bound is None else 2 * self.bound + 1) / self.scale",
        "return Fraction(2 if self.bound is None else self.bound) / self.scale",
    ),
    (
        "methods/graphs/degree_sequence.py",
        "degrees = fitted(self.statistic(graph) + coins.laplace(step.scale, graph.size))",
        "degrees = fitted(self.statistic(graph) + coins.laplace(step.scale / 2, graph.size))",
    ),
    (
        "methods/graphs/clustering.py",
        "return StepGuarantee(Pure(2 * self.half), (_SOURCE,), assumptions(unit))",
        "return StepGuarantee(Pure(self.half), (_SOURCE,), assumptions(unit))",
    ),
    (
        "methods/graphs/edge_kinds.py",
        "noisy = [number + coins.laplace(step.scale, len(number)) for number in numbers]",
        "noisy = [number + coins.laplace(step.scale / 2, len(number)) for number in numbers]",
    ),
    (
        "methods/graphs/edge_response.py",
        "answers = coins.bernoulli(flip, end - begin)",
        "answers = coins.bernoulli(flip / 2, end - begin)",
    ),
)
KERNELS = area(
    "graphs",
    "tests/methods/graphs/test_compiled.py -k python",
    (
        "methods/graphs/shared/compiled.py",
        "enough |= shared[at] >= floor + least",
        "enough |= shared[at] > floor + least",
    ),
)
SURVEYS = area(
    "surveys",
    "tests/replay/test_answers.py tests/methods/local/test_mechanisms.py -k report_or_survey_or_mechanisms",
    (
        "methods/local/mechanisms/ratio.py",
        "ratio = largest_below(exponential_below(epsilon), 2**bits)",
        "ratio = largest_below(exponential_below(2 * epsilon), 2**bits)",
    ),
    (
        "methods/local/mechanisms/sets.py",
        "return self.weights.value**2",
        "return self.weights.value",
        "SymmetricUnary.ratio",
    ),
    (
        "methods/local/mechanisms/hashed.py",
        "draws = coins.below(self.total, len(values)) - self.weights.own",
        "draws = coins.below(self.total, len(values)) - 2 * self.weights.own",
    ),
    ("methods/local/survey/steps.py", "if self.ratio > exponential_below(self.epsilon):", "if False:"),
)
_SSO = "web/sso.py"
SIGN_ON = area(
    "sign-on",
    "tests/web/test_sso.py",
    (_SSO, "if len(values) > 1 or peer is None or _canonical(peer) not in self.addresses:", "if len(values) > 1:"),
    (_SSO, 'if not any(_holds(key, header.get("alg"), signature, signed) for key in self.keys):', "if False:"),
    (_SSO, "return claims if self._is_for_now(claims) else None", "return claims"),
    (
        _SSO,
        "return self.audience in named and issued and times[0] > now and max(times[1:]) <= now + _SKEW",
        "return issued and times[0] > now and max(times[1:]) <= now + _SKEW",
    ),
    ("web/caller.py", "check_page(request)  # the proxy signs on every browser that visits", "pass"),
    ("governance/access_list.py", "if stored is not None and mark == marks[0]:", "if False:"),
) + area(
    "sign-on",
    "tests/web/studio/test_sessions.py -k proxy",
    (
        "web/studio/sessions.py",
        "owner = user.role is AccessRole.OWNER and user.datasets is None",
        "owner = user.role is AccessRole.OWNER",
    ),
    ("web/studio/sessions.py", 'if headers.get("host") != proxy.host:', "if False:"),
    (
        "web/studio/sessions.py",
        "return self._foreign(scope, headers, proxy.origin) if refusal is None else _no(401, refusal)",
        "return self._foreign(scope, headers, proxy.origin)",
    ),
)
_RHO = 'return Problem(f"its rho is {float(needed):.6g} at least") if float(rho) * TOLERANCE < float(needed) else None'
VERIFY = area(
    "verify",
    "tests/verifier tests/contract/test_forgery.py -k verifier_or_histogram_or_safe",
    ("verifier/judge.py", "if keeps and not keeps_rows_of(statement.basis.find(KeepRows), unit):", "if False:"),
    ("verifier/judge.py", "if not in_order(statement.steps, check.order):", "if False:"),
    (
        "verifier/judge.py",
        'for part in ("loss", "because", "assumes", "delta"):',
        'for part in ("loss", "because", "delta"):',
    ),
    (
        "verifier/judge.py",
        'return None if made == certificate.claims else Problem("they are in the wrong order")',
        "return None",
    ),
    (
        "verifier/judge.py",
        "if spent[0] != claimed or (private and spent[1] < certificate.guarantee.delta):",
        "if spent[0] != claimed:",
    ),
    ("verifier/judge.py", "if any(whole < part for whole, part in zip(total, spent, strict=True)):", "if False:"),
    ("verifier/judge.py", "if gate is not None and not gate.settled:", "if False:"),
    (
        "verifier/judge.py",
        _RHO,
        "return None",
    ),
)
SERIES = (
    *area(
        "series",
        "tests/theorems/test_periods.py tests/theorems/test_series.py",
        (
            "accounting/ledger/periods.py",
            "return totals.every.plus(totals.worst if labels is None else spent_in(values, root, labels[0]))",
            "return totals.worst if labels is None else spent_in(values, root, labels[0])",
        ),
        (
            "engines/local/views.py",
            "undated = self.calendar.period_of(None) == self.label",
            "undated = True",
        ),
        (
            "methods/histograms/continual/method.py",
            "squared = sensitivity(matrix, request.pattern)",
            "squared = sensitivity(matrix, ContributionPattern(1, 1))",
        ),
        (
            "methods/histograms/continual/strategies.py",
            "return pattern.rows**2 * int(np.maximum(inner, 0).sum())",
            "return pattern.rows**2 * int(inner.sum())",
        ),
        (
            "methods/histograms/continual/running.py",
            "spent = {digest for digest, number in times.items() if most is not None and number >= most}",
            "spent = {digest for digest, number in times.items() if most is not None and number > most}",
        ),
        (
            "methods/histograms/continual/method.py",
            "if unit.kind is Kind.PERSON_PERIOD:",
            "if False:",
        ),
        (
            "workflows/release/running.py",
            "return frozenset(digest for digest, labels in times.items() if len(labels) >= most)",
            "return frozenset(digest for digest, labels in times.items() if len(labels) > most)",
        ),
    ),
    *area(
        "series",
        "tests/engines/readers/test_columnar.py -k zone",
        (
            "engines/readers/columnar.py",
            "same |= {name: kind for name, kind in mixed.items() if kind is not None}",
            "pass",
        ),
        (
            "engines/local/engine.py",
            "own |= {name: stored[name] for name in columns if name in stored and pa.types.is_timestamp(stored[name])}",
            "pass",
        ),
    ),
    *area(
        "queries",
        "tests/workflows/query/test_unreadable_sources.py -k zone",
        ("workflows/query/tables.py", "if pa.types.is_timestamp(kind) and kind.tz not in _UTC:", "if False:"),
    ),
    *area(
        "series",
        "tests/workflows/series/test_withdrawals.py -k alike",
        (
            "methods/histograms/continual/counting.py",
            "texts = [item.labels() for item in classes]",
            "texts = [item.values() for item in classes]",
        ),
    ),
    *area(
        "series",
        "tests/replay/test_series.py -k withdrawals",
        (
            "methods/histograms/continual/counting.py",
            "if (period.number, digest) not in before and not consent.stands(*period.subjects[digest])",
            "if not consent.stands(*period.subjects[digest])",
        ),
        (
            "methods/histograms/continual/strategies.py",
            "inner = _taken_back(inner)",
            "pass",
        ),
        (
            "methods/histograms/continual/strategies.py",
            "moved = np.concatenate([line[None, :], line - inner[row + 1 :]])",
            "moved = line[None, :].copy()",
        ),
    ),
    *area(
        "series",
        "tests/theorems/test_rounds.py tests/workflows/collect/test_rounds.py",
        (
            "methods/local/mechanisms/memoized.py",
            "return self.permanent.ratio**self.distinct",
            "return self.permanent.ratio",
        ),
        (
            "workflows/collect/participant.py",
            "value = code if code in before or len(before) < most else before[-1]",
            "value = code",
        ),
        (
            "methods/local/survey/steps.py",
            "bits = part.size if part.family is Family.SYMMETRIC else 1",
            "bits = 1",
        ),
        (
            "workflows/collect/participant.py",
            "if first in spent:",
            "if False:",
        ),
    ),
    *area(
        "series",
        "tests/workflows/consent/test_subject.py",
        (
            "workflows/consent/subject.py",
            "return charged.series.epsilon, charged.series.delta",
            "return charged.epsilon, charged.delta",
        ),
    ),
)
GUARDS = (*ACCOUNTANTS, *LEDGER, *CONSENT, *QUERIES, *CROWDS, *GRAPHS, *KERNELS, *SERIES, *SURVEYS, *SIGN_ON, *VERIFY)
