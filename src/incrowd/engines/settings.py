"""Settings: which engine processes the rows; they affect no guarantee, so certificates do not hold them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from incrowd.core.table import DEFAULTS, Engine, SourceOptions, Table
from incrowd.engines.columns import require
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.core.schema import Schema

_SECRET = re.compile("secret|password|token|credential|access[.]?key", re.IGNORECASE)
_MASTER = re.compile(r"(spark|k8s)://.+|yarn|local(-cluster)?(\[.*\])?")
_OWN = {"spark.master": "master", "spark.remote": "remote"}


@dataclass(frozen=True)
class Local:
    """The process that runs incrowd: the default."""


@dataclass(frozen=True)
class Spark:
    """A Spark cluster: its `master`, or its `remote` for Spark Connect; without both, Spark on this machine.

    `config` holds more settings of the session, none of them secret.  `id` names the column that identifies rows
    without a position: those of tables and views, not those of files.

    >>> Spark(master="spark://driver:7077", remote="sc://gateway:15002")
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: a cluster has a master or a remote, not both: leave one out.
    """

    master: str | None = None
    remote: str | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    id: str | None = None

    def __post_init__(self) -> None:
        if self.master is not None and self.remote is not None:
            raise InvalidParameter("a cluster has a master or a remote, not both: leave one out.")
        if self.master is not None and _MASTER.fullmatch(self.master) is None:
            raise InvalidParameter(
                f"{self.master!r} is not the master of a cluster. Write spark://HOST:PORT, yarn, k8s://ADDRESS, or "
                "local[4] for this machine."
            )
        if self.remote is not None and not self.remote.startswith("sc://"):
            raise InvalidParameter("a remote is the address of a Spark Connect server, such as sc://host:15002.")
        if self.remote is not None and re.search("token=", self.remote, re.IGNORECASE):
            raise InvalidParameter(
                "a remote must not hold a token: policies and internal files are passed around. Put it into the "
                "environment as SPARK_CONNECT_AUTHENTICATE_TOKEN."
            )
        for name in self.config:
            if name in _OWN:
                raise InvalidParameter(f"{name} is set by {_OWN[name]}: leave it out of config.")
            if _SECRET.search(name):
                raise InvalidParameter(
                    f"{name} is a secret, and policies are passed around: set it in the spark-defaults.conf of the "
                    "driver, or in its environment, and leave it out of config."
                )


Settings = Local | Spark


def override(settings: Settings, name: str | None, master: str | None, remote: str | None) -> Settings:
    """Return the settings, changed by what a caller names: an engine, or the address of a cluster.

    Naming a cluster chooses Spark; naming only Spark keeps the policy's settings of it.

    >>> override(Local(), None, "spark://driver:7077", None).master
    'spark://driver:7077'
    >>> override(Spark(master="yarn", id="visit"), "spark", None, "sc://gateway:15002")
    Spark(master=None, remote='sc://gateway:15002', config={}, id='visit')
    >>> override(Spark(master="yarn"), "local", None, None)
    Local()
    """
    named = master is not None or remote is not None
    if name not in {None, "local", "spark"}:
        raise InvalidParameter(f"there is no engine {name!r}. Choose local or spark.")
    if name == "local" and named:
        raise InvalidParameter("the local engine has neither master nor remote: leave them out, or name spark.")
    if name == "local" or (name is None and not named):
        return Local() if name == "local" else settings
    spark = settings if isinstance(settings, Spark) else Spark()
    return Spark(master, remote, spark.config, spark.id) if named else spark


def describe(settings: Settings) -> dict[str, object]:
    """Return where a release ran, for the internal record; it names hosts, so it is never published.

    >>> describe(Spark(master="yarn", config={"spark.executor.memory": "4g"}))
    {'engine': 'spark', 'master': 'yarn', 'config': {'spark.executor.memory': '4g'}}
    """
    values = {item.name: getattr(settings, item.name) for item in fields(settings)}
    return {"engine": type(settings).__name__.lower()} | {name: value for name, value in values.items() if value}


@contextmanager
def engine_of(settings: Settings, data: object = None) -> Iterator[Engine]:
    """Start the engine that the settings name, and stop it afterwards.

    A Spark frame is processed in its own session, which stays open.

    >>> with engine_of(Local()) as engine:
    ...     type(engine).__name__
    'LocalEngine'
    """
    if not isinstance(settings, Spark):
        from incrowd.engines.local.engine import LOCAL

        yield LOCAL
        return
    from incrowd.engines.spark.engine import SparkEngine, spark_engine
    from incrowd.engines.worker import lift_limits

    lift_limits()  # a cluster has limits of its own
    if _is_spark_frame(data):
        yield SparkEngine.on(data.sparkSession, settings.id)  # type: ignore[attr-defined]
        return
    with spark_engine(settings) as engine:
        yield engine


def settings_for(data: object, settings: Settings) -> Settings:
    """Return the settings for this data: a Spark frame is processed by Spark, never copied to this process.

    >>> settings_for("people.csv", Local())
    Local()
    """
    return Spark() if _is_spark_frame(data) and not isinstance(settings, Spark) else settings


def _is_spark_frame(data: object) -> bool:
    return type(data).__module__.startswith("pyspark.sql.")


def open_table(
    source: object, schema: Schema, options: SourceOptions = DEFAULTS, engine: Engine | None = None
) -> Table:
    """Open a source under a schema, on an engine (by default the local one); no row is read.

    >>> import pyarrow as pa
    >>> from incrowd.core.schema import Column, Role, Schema
    >>> table = open_table(pa.table({"zip": ["01234"]}), Schema((Column("zip", Role.QUASI),)))
    >>> type(table.engine).__name__, table.rows.names
    ('LocalEngine', ('zip',))
    """
    if engine is None:
        from incrowd.engines.local.engine import LOCAL

        engine = LOCAL
    rows = engine.open(source, options)
    require(rows.names, schema.names)
    return Table(schema, rows, engine)
