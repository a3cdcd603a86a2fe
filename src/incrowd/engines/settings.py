"""Settings: on which engine the rows are worked on; no part of any guarantee, so no part of what is certified."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from incrowd.errors import InvalidParameter

_SECRET = re.compile("secret|password|token|credential|access[.]?key", re.IGNORECASE)
_MASTER = re.compile(r"(spark|k8s)://.+|yarn|local(-cluster)?(\[.*\])?")
_OWN = {"spark.master": "master", "spark.remote": "remote"}


@dataclass(frozen=True)
class Local:
    """The process that asks: the default."""


@dataclass(frozen=True)
class Spark:
    """A Spark cluster, named by its `master` or, over Spark Connect, by its `remote`; else Spark in this machine.

    `config` holds further settings of the session, none of them secret; `id` names a column that tells rows apart
    where they have no place of their own: in tables and views, other than in files.

    >>> Spark(master="spark://driver:7077", remote="sc://gateway:15002")
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: a cluster is named by its master or by its remote, not by both: leave one out.
    """

    master: str | None = None
    remote: str | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    id: str | None = None

    def __post_init__(self) -> None:
        if self.master is not None and self.remote is not None:
            raise InvalidParameter("a cluster is named by its master or by its remote, not by both: leave one out.")
        if self.master is not None and _MASTER.fullmatch(self.master) is None:
            raise InvalidParameter(
                f"{self.master!r} is no master of a cluster: it is spark://HOST:PORT, yarn, k8s://ADDRESS, or local[4] "
                "for this machine."
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
                raise InvalidParameter(f"{name} is said by {_OWN[name]}: leave it out of config.")
            if _SECRET.search(name):
                raise InvalidParameter(
                    f"{name} is a secret, and policies are passed around: set it in the spark-defaults.conf of the "
                    "driver, or in its environment, and leave it out of config."
                )


Settings = Local | Spark


def override(settings: Settings, name: str | None, master: str | None, remote: str | None) -> Settings:
    """Return the settings with what a caller says on top: the name of an engine, or where a cluster is.

    Naming a cluster is enough to choose Spark; naming Spark keeps what the policy says about it.

    >>> override(Local(), None, "spark://driver:7077", None).master
    'spark://driver:7077'
    >>> override(Spark(master="yarn", id="visit"), "spark", None, "sc://gateway:15002")
    Spark(master=None, remote='sc://gateway:15002', config={}, id='visit')
    >>> override(Spark(master="yarn"), "local", None, None)
    Local()
    """
    named = master is not None or remote is not None
    if name not in {None, "local", "spark"}:
        raise InvalidParameter(f"there is no engine {name!r}: there are local and spark.")
    if name == "local" and named:
        raise InvalidParameter("the local engine has neither master nor remote: leave them out, or name spark.")
    if name == "local" or (name is None and not named):
        return Local() if name == "local" else settings
    told = settings if isinstance(settings, Spark) else Spark()
    return Spark(master, remote, told.config, told.id) if named else told


def describe(settings: Settings) -> dict[str, object]:
    """Return what the internal record says of where a release ran; it names hosts, and so is never published.

    >>> describe(Spark(master="yarn", config={"spark.executor.memory": "4g"}))
    {'engine': 'spark', 'master': 'yarn', 'config': {'spark.executor.memory': '4g'}}
    """
    told = {item.name: getattr(settings, item.name) for item in fields(settings)}
    return {"engine": type(settings).__name__.lower()} | {name: value for name, value in told.items() if value}
