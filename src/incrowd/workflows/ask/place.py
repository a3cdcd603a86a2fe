"""Place: where the tables of a desk are opened and asked: here, on Spark, or in the database that holds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from incrowd.core.marks import SourceMarks
from incrowd.core.schema import Schema
from incrowd.core.source import SourceOptions
from incrowd.core.table import Opened
from incrowd.engines.choose import engine_of, settings_for
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.row_marks import marks_of
from incrowd.engines.settings import Settings, Spark
from incrowd.engines.sql.duckdb import warehouse
from incrowd.engines.sql.engine import Asked, Limits, Stored
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.policy import Policy


@dataclass(frozen=True)
class Place:
    """How rows are opened, how they are told from others, and what is asked about them.

    Rows that stay in their database leave no marks but their digest.
    """

    open: Callable[[Any, SourceOptions], Opened]
    digest: Callable[[Any], bytes]
    marks: Callable[[Any, Schema, bytes], SourceMarks] | None
    asked: Callable[[Mapping[str, Stored], Limits | None], AbstractContextManager[Asked]]


@contextmanager
def place_of(policies: Sequence[Policy], data: object = None, settings: Settings | None = None) -> Iterator[Place]:
    """Open the place that the policies name, or the engine that a caller names instead.

    A frame of Spark is asked in its own session.
    """
    told = [policy.engine for policy in policies] if settings is None else [settings]
    told = [settings_for(data, each) for each in told]
    pushed = {policy.section.queries is not None and policy.section.queries.pushdown for policy in policies}
    if any(each != told[0] for each in told) or len(pushed) > 1:
        raise InvalidParameter(
            "questions over several policies are computed in one place, and these name different ones: give them the "
            "same engine: and pushdown:."
        )
    if isinstance(told[0], Spark) and True in pushed:
        raise InvalidParameter("with pushdown the database computes, not Spark: name one of both.")
    if isinstance(told[0], Spark):
        with _on_spark(told[0], data) as place:
            yield place
    elif True in pushed:
        from incrowd.engines.sql.postgres import ServerRows, open_server_rows, postgres_warehouse

        yield Place(open_server_rows, ServerRows.digest, None, postgres_warehouse)
    else:
        yield Place(LOCAL.open, LOCAL.digest, partial(marks_of, LOCAL), warehouse)


@contextmanager
def _on_spark(settings: Spark, data: object) -> Iterator[Place]:
    from incrowd.engines.spark.engine import SparkEngine
    from incrowd.engines.sql.spark import spark_warehouse

    with engine_of(settings, data) as engine:
        if isinstance(engine, SparkEngine):
            yield Place(engine.open, engine.digest, partial(marks_of, engine), partial(spark_warehouse, engine.session))
