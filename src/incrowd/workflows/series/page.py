"""Page of a series: cells over periods with intervals, what each period spent, and which periods are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from markupsafe import Markup

from incrowd.core.certificate import Certificate
from incrowd.core.words import counted, short_up
from incrowd.drawing.markup import figure, joined, table, tag
from incrowd.drawing.multiples import Multiple, multiples
from incrowd.errors import OutputUnavailable
from incrowd.methods.shared.outcome import Histogram, Outcome
from incrowd.verifier.files import tables_of
from incrowd.verifier.judge import statement_of
from incrowd.workflows.registry import check_of, picture_of
from incrowd.workflows.release.differences import published_release
from incrowd.workflows.series.series import PeriodState, PeriodStatus, Series

_SHOWN = 12
_WIDE, _BAND, _HIGH = 720, 60, 46
_STYLE = Markup("""<style>
body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:60rem;padding:1rem;color:#1b1f24;background:#fff}
h1{font-size:1.4rem}h2{font-size:1.1rem}table{border-collapse:collapse;width:100%}
td,th{border-bottom:1px solid #d8dee4;padding:.25rem .5rem;text-align:left}
caption{text-align:left;font-weight:600;padding:.5rem 0}.scroll{overflow-x:auto}figure{margin:1rem 0}
svg{width:100%;height:auto;max-width:100%}svg text{font:12px system-ui,sans-serif;fill:#1b1f24}
.band{fill:#0072b2;opacity:.18}.line{fill:none;stroke:#0072b2;stroke-width:1.6}.value{fill:#0072b2}
.zero{stroke:#8a94a0;stroke-width:.6}.end{fill:#57606a}
.published{fill:#0072b2}.missing{fill:#fff;stroke:#b3261e;stroke-width:1.5;stroke-dasharray:3 2}.open{fill:#e3e7eb}
@media(prefers-color-scheme:dark){body{color:#e8ebef;background:#14181d}svg text{fill:#e8ebef}.open{fill:#3a434d}
.missing{fill:#14181d}td,th{border-color:#3a434d}}
</style>""")


def write_page(series: Series, file: Path) -> None:
    """Write the page of a series to a new file; it holds published numbers and the ledger's amounts, and no rows."""
    page = str(series_page(series))
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(page)
    except FileExistsError:
        raise OutputUnavailable(f"{file} already exists. Choose another name.") from None
    except OSError as error:
        raise OutputUnavailable(f"{file} could not be written: {error.strerror or 'no reason given'}.") from None


def series_page(series: Series) -> Markup:
    """Return the page of a series as one self-contained document."""
    periods, releases = series.status(), dict(_certificates(series))
    title = f"{series.policy.name}: {series.name}"
    parts = [
        tag("h1", title),
        tag("p", _summary(series, periods, releases)),
        *_charts(series, releases),
        tag("h2", "Budget over periods"),
        period_band(periods),
        _table(series, periods),
    ]
    head = joined([tag("meta", charset="utf-8"), tag("title", title), _STYLE])
    view = Markup('<meta name="viewport" content="width=device-width, initial-scale=1">')
    return Markup('<!doctype html><html lang="en"><head>{}{}</head><body>{}</body></html>').format(
        view, head, joined(parts)
    )


def _certificates(series: Series) -> Iterator[tuple[str, tuple[Path, Certificate]]]:
    """Yield the published periods whose files are where they were published."""
    if series.ledger is None:
        return
    for period in series.status():
        for id_ in reversed(period.releases):
            release = published_release(series.policy, series.ledger, id_)
            if release.certificate is not None and release.folder is not None:
                yield period.label, (release.folder, release.certificate)
                break


def _summary(series: Series, periods: tuple[PeriodStatus, ...], releases: dict[str, tuple[Path, Certificate]]) -> str:
    missing = [period.label for period in periods if period.state is PeriodState.MISSING]
    published = sum(period.state is PeriodState.PUBLISHED for period in periods)
    lost = f" Missing: {', '.join(missing)}; their charges are not refunded." if missing else ""
    newest = max(
        (certificate for _, certificate in releases.values()),
        key=lambda certificate: certificate.ledger.sequence,
        default=None,
    )
    total = ""
    if newest is not None:
        amounts = newest.accounting.total
        bounded = Decimal(amounts.epsilon).is_finite()
        numbers = f"ε {_up(amounts.epsilon)}, δ {_up(amounts.delta)}" if bounded else "no bound on the privacy loss"
        most = series.policy.participations
        who = "all of them" if most is None else f"{counted(most, 'period')}, the most that a person takes part in"
        total = f" Somebody in {who}, with everything charged to this dataset: {numbers}."
    unit = series.policy.schema.unit
    return f"{counted(published, 'period')} of {len(periods)} published.{lost}{total} Protected: {unit}."


def _up(amount: str) -> str:
    return short_up(Decimal(amount), 6)


def _charts(series: Series, releases: dict[str, tuple[Path, Certificate]]) -> list[Markup]:
    """Return cells over periods: picture by the method where its releases hold them all, else from single tables."""
    if not releases:
        return []
    outputs = {label: (_output(*place), place[1]) for label, place in releases.items()}
    label = next(reversed(outputs))
    newest, certificate = outputs[label]
    if series.policy.method.running:
        picture = picture_of(certificate.method.name).draw(statement_of(certificate), newest)
        return [] if picture is None else [tag("h2", "Cells over periods"), picture]
    if isinstance(newest, Histogram):
        within = max((getattr(step, "within", 0) for step in certificate.steps), default=0)
        return _cells(series, [(name, output) for name, (output, _) in outputs.items()], within)
    return _rows(series, [(name, output) for name, (output, _) in outputs.items()])


def _cells(series: Series, outputs: list[tuple[str, Any]], within: int) -> list[Markup]:
    """Return charts of the noisy counts of single periods, with the interval of each."""
    points: dict[str, list[tuple[int, float]]] = {}
    for name, output in outputs:
        rows = zip(*(output.table[column].to_pylist() for column in output.labels), output.counts.tolist(), strict=True)
        for *cell, count in rows:
            points.setdefault(", ".join(map(_label, cell)), []).append((series.labels.index(name) + 1, float(count)))
    charts = _largest(points)
    what = f"{counted(len(charts), 'cell')} over periods; the band is ± {within:,} (95 % of counts)."
    return _figure(series, charts, float(within), what)


def _rows(series: Series, outputs: list[tuple[str, Any]]) -> list[Markup]:
    """Return charts of how many published rows have which value of the first column with few values."""
    counts = {name: _values(output) for name, output in outputs if isinstance(output, Outcome)}
    names = [name for name in next(iter(counts.values()), {}) if all(name in period for period in counts.values())]
    values = {name: {value for period in counts.values() for value in period[name]} for name in names}
    column = next((name for name in names if 1 < len(values[name]) <= _SHOWN), None)
    if column is None:
        return []
    points: dict[str, list[tuple[int, float]]] = {label: [] for label in sorted(map(_label, values[column]))}
    for name, period in counts.items():
        for value in values[column]:
            points[_label(value)].append((series.labels.index(name) + 1, float(period[column][value])))
    what = f"Published rows by {column}, as they are: nothing is corrected for samples and suppressed rows."
    return _figure(series, _largest(points), 0.0, what)


def _values(output: Outcome) -> dict[str, Counter[object]]:
    """Return how many rows have which value, for the columns with few values."""
    counts: dict[str, Counter[object]] = {name: Counter() for name in output.schema.names}
    for batch in output.batches():
        for name in list(counts):
            for entry in batch.column(name).value_counts().to_pylist():
                counts[name][entry["values"]] += entry["counts"]
            if len(counts[name]) > _SHOWN:
                del counts[name]
    return counts


def _label(value: object) -> str:
    return "missing" if value is None else str(value)


def _largest(points: dict[str, list[tuple[int, float]]]) -> list[Multiple]:
    largest = sorted(points, key=lambda key: -sum(abs(value) for _, value in points[key]))[:_SHOWN]
    return [Multiple(key, sorted(points[key])) for key in points if key in largest]


def _figure(series: Series, charts: list[Multiple], within: float, what: str) -> list[Markup]:
    last = [[chart.name, f"{chart.points[-1][1]:,.0f}"] for chart in charts]
    numbers = table("Counts of the last period", ["Cell", "Count"], last)
    return [tag("h2", "Cells over periods"), figure(multiples(what, charts, within, series.labels), what, numbers)]


def _output(folder: Path, certificate: Certificate) -> Any:
    files = tuple(folder / file.name for file in tables_of(certificate))
    return check_of(certificate.method.name).reopen(statement_of(certificate), files)


def period_band(periods: tuple[PeriodStatus, ...]) -> Markup:
    """Return what each period spent as a band of bars; a missing period is an outline."""
    spent = [float(period.spent.epsilon) if period.spent is not None else 0.0 for period in periods]
    most = max([*spent, 0.0])
    bars, step = [], round(_WIDE / len(periods), 2)
    for place, (period, amount) in enumerate(zip(periods, spent, strict=True)):
        high = 6 + (_HIGH * amount / most if most else _HIGH * (period.state is not PeriodState.OPEN))
        kind = {PeriodState.PUBLISHED: "published", PeriodState.MISSING: "missing", PeriodState.OPEN: "open"}[
            period.state
        ]
        place_of = {"x": round(place * step, 1), "y": round(_BAND - high, 1), "height": round(high, 1)}
        bars.append(
            tag(
                "rect",
                tag("title", f"{period.label}: {period.state}"),
                **place_of,
                width=round(0.8 * step, 2),
                class_=kind,
            )
        )
    what = "What each period spent; outlined: missing; pale: not released"
    ends = [
        tag("text", periods[0].label, x=0, y=_BAND + 16),
        tag("text", periods[-1].label, x=_WIDE, y=_BAND + 16, text_anchor="end"),
    ]
    return tag("svg", *bars, *ends, viewBox=f"0 0 {_WIDE} {_BAND + 22}", role="img", aria_label=what)


def _table(series: Series, periods: tuple[PeriodStatus, ...]) -> Markup:
    rows = []
    for period in periods:
        together = series.policy.releases is not None and bool(period.releases)
        own = "" if period.alone is None else f"ε {_up(str(period.alone.epsilon))}" if period.bounded else "no bound"
        amount = "; other releases: ".join(filter(None, ("with the series", own))) if together else own
        rows.append([period.label, str(period.state), amount])
    return table("Periods", ["Period", "State", "Spent"], rows)
