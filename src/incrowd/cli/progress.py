"""Progress: rows or attacks, and remaining time on a terminal, for work that takes more than a second."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from incrowd.core.table import Engine, Progress, Rows

_PATIENCE = 1.0  # seconds before a bar appears


@contextmanager
def progress(enabled: bool, unit: str = "rows") -> Iterator[Progress | None]:
    """Show a bar on a terminal once the work has taken a second, and wipe it away in the end.

    What is yielded is told how many rows, or others of a `unit`, are done, of how many; fewer than before is another
    pass over them.

    >>> with progress(False) as tell:
    ...     print(tell)
    None
    """
    if not enabled or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    done_so_far = TextColumn(f"{{task.completed:>13,.0f}} {unit}")
    left = TimeRemainingColumn(compact=True)
    columns = (
        TextColumn("pass {task.fields[number]}"),
        BarColumn(bar_width=30),
        done_so_far,
        TimeElapsedColumn(),
        left,
    )
    with Bar(*columns, TextColumn("left"), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, visible=False, number=1)

        def tell(done: int, total: int | None) -> None:
            if done < bar.tasks[0].completed:
                bar.reset(task, total=total, number=bar.tasks[0].fields["number"] + 1, visible=bar.tasks[0].visible)
            bar.update(task, completed=done, total=total)

        late = Timer(_PATIENCE, bar.update, (task,), {"visible": True})
        late.daemon = True
        late.start()
        try:
            yield tell
        finally:
            late.cancel()


def watched(rows: Rows, engine: Engine, tell: Progress | None) -> Rows:
    """Return the same rows, which tell how many have been read, if anybody wants to know."""
    return rows if tell is None else engine.watched(rows, tell)
