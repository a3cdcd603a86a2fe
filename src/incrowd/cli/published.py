"""Columns as they will be published, printed before anything is charged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.cli.output import print_table
from incrowd.core.words import listed

if TYPE_CHECKING:
    from incrowd.workflows.plan.published import PublishedColumn
    from incrowd.workflows.policy.policy import Policy


def show_published(policy: Policy) -> None:
    """Print each column as it will be published, with example labels made from the schema."""
    from incrowd.workflows.plan.published import published_columns, unpublished

    columns = published_columns(policy.plan, policy.schema)
    if not columns:
        return
    absent = unpublished(policy.plan, policy.schema)
    rest = f" Not published: {listed(absent)}." if absent else ""
    print_table(
        "Columns as they will be published",
        [_line(column) for column in columns],
        f"Labels are examples made from the schema; no row was read for them.{rest}",
        header=("column", "published as", "tells apart"),
    )


def _line(column: PublishedColumn) -> tuple[str, ...]:
    words = [column.detail if not column.constant else "", *column.flags]
    return (column.name, column.label_text, "; ".join(text for text in words if text))
