"""What is shown before anything is charged: columns as they will be published, and routes side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from incrowd.cli.output import print_table
from incrowd.core.words import listed

if TYPE_CHECKING:
    from incrowd.workflows.plan.published import PublishedColumn
    from incrowd.workflows.plan.routes import RouteOffer, RouteTable
    from incrowd.workflows.policy.policy import Policy


def show_published(policy: Policy, notes: Sequence[str] = ()) -> None:
    """Print notes on the rows, and each column as it will be published, with example labels made from the schema."""
    from incrowd.workflows.plan.published import published_by, unpublished

    if notes:
        print_table("Before the charge", [("note", note) for note in notes])
    columns = published_by(policy)
    if not columns:
        return
    absent = unpublished(policy)
    rest = f" Not published: {listed(list(absent))}." if absent else ""
    print_table(
        "Columns as they will be published",
        [_line(column) for column in columns],
        f"Labels are examples made from the schema; no row was read for them.{rest}",
        header=("column", "published as", "tells apart"),
    )


def _line(column: PublishedColumn) -> tuple[str, ...]:
    words = [column.detail if not column.constant else "", *column.flags]
    return (column.name, column.label_text, "; ".join(text for text in words if text))


def show_routes(routes: RouteTable) -> None:
    """Print the routes side by side, and which one is recommended."""
    advice = "No route is recommended" if routes.recommended is None else f"Recommended: --for {routes.recommended}"
    print_table(
        "Routes, by the schema and public numbers alone",
        [_route(offer) for offer in routes.offers],
        f"{advice}: {routes.reason.removesuffix('.')}.",
        header=("--for", "keeps", "error, remaining risk, cost"),
    )


def _route(offer: RouteOffer) -> tuple[str, ...]:
    if offer.refusal is not None:
        return (str(offer.goal), "-", offer.refusal)
    lines = (offer.guarantee, f"error: {offer.error}", f"risk: {offer.risk}", f"cost: {offer.cost}")
    return (str(offer.goal), offer.kept_text, "\n".join(lines))
