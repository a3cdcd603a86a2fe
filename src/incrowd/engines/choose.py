"""Choose: the engine that settings ask for, and the table that a source and a schema make on one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from incrowd.core.schema import Schema
from incrowd.core.table import DEFAULTS, Engine, SourceOptions, Table
from incrowd.engines.columns import require
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.settings import Settings, Spark


@contextmanager
def engine_of(settings: Settings, data: object = None) -> Iterator[Engine]:
    """Start the engine that the settings ask for, and stop at the end what was started for it.

    A frame of Spark is worked on in its own session, which is left as it is.

    >>> from incrowd.engines.settings import Local
    >>> with engine_of(Local()) as engine:
    ...     type(engine).__name__
    'LocalEngine'
    """
    if not isinstance(settings, Spark):
        yield LOCAL
        return
    from incrowd.engines.spark.engine import SparkEngine, spark_engine

    if _is_spark_frame(data):
        yield SparkEngine.on(data.sparkSession, settings.id)  # type: ignore[attr-defined]
        return
    with spark_engine(settings) as engine:
        yield engine


def settings_for(data: object, settings: Settings) -> Settings:
    """Return the settings under which this data is worked on: a frame of Spark does not come to this process.

    >>> from incrowd.engines.settings import Local
    >>> settings_for("people.csv", Local())
    Local()
    """
    return Spark() if _is_spark_frame(data) and not isinstance(settings, Spark) else settings


def _is_spark_frame(data: object) -> bool:
    return type(data).__module__.startswith("pyspark.sql.")


def open_table(source: object, schema: Schema, options: SourceOptions = DEFAULTS, engine: Engine = LOCAL) -> Table:
    """Open a source under a schema, on an engine; no row is read.

    >>> import pyarrow as pa
    >>> from incrowd.core.schema import Column, Role
    >>> table = open_table(pa.table({"zip": ["01234"]}), Schema((Column("zip", Role.QUASI),)))
    >>> type(table.engine).__name__, table.rows.names
    ('LocalEngine', ('zip',))
    """
    rows = engine.open(source, options)
    require(rows.names, schema.names)
    return Table(schema, rows, engine)
