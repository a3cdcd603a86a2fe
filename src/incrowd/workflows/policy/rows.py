"""Rows that a verb looks at: in the policy's source, in a file named beside it, or in a release."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from incrowd.core.table import DEFAULTS, Engine, Opened, SourceOptions
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.readers.guess import guessed_options
from incrowd.engines.readers.sources import Source, open_source
from incrowd.engines.regular_file import is_regular
from incrowd.engines.settings import Local, Settings, override
from incrowd.errors import InvalidParameter, SourceUnreadable
from incrowd.workflows.policy.policy import Policy

CERTIFICATE = "certificate.json"
_FORMATS = (".parquet", ".csv", ".tsv")


def open_rows(
    data: str | None, policy: Policy | None, given_options: SourceOptions = DEFAULTS, engine: Engine = LOCAL
) -> Opened:
    """Open the data that was named, or else the policy's source, on an engine; no row is read but for a guess.

    How the policy says that its source is read holds for another file too, if its name has the same ending; the folder
    of a release and what is in it, and a file of another kind, are read as what they are.  What a caller tells goes
    before.  Without a policy, what nobody tells is guessed from the rows.
    """
    return engine.open(*reading(data, policy, given_options))


def open_here(data: str | None, policy: Policy | None, given_options: SourceOptions = DEFAULTS) -> Opened:
    """Open rows for a verb that reads them into this process, and not from a cluster unless they are named."""
    require_named(data, policy)
    return open_rows(data, policy, given_options)


def require_named(data: object, policy: Policy | None) -> None:
    """Refuse to read a whole source into this process where a cluster works on it and nobody named the rows."""
    if data is None and policy is not None and not isinstance(policy.engine, Local):
        raise InvalidParameter(
            "the policy's rows are worked on by Spark, and this command reads rows into this process. Nothing was "
            "read: name a file of this machine, such as a sample of the rows."
        )


def reading(
    data: str | None, policy: Policy | None, given_options: SourceOptions = DEFAULTS
) -> tuple[str | Path, SourceOptions]:
    """Return where the rows are, and how they are read: as told, else as the policy says, else as guessed."""
    options = DEFAULTS if policy is None else policy.options
    if data is None:
        if policy is None or policy.source is None:
            raise InvalidParameter("no data: give a file, or a policy with a source.")
        return policy.source, over(options, given_options)
    if is_release(data):
        return _data_file(Path(data)), DEFAULTS
    if policy is None:
        released = is_release(str(Path(data).parent))
        return data, over(DEFAULTS, given_options) if released else guessed_options(data, over(DEFAULTS, given_options))
    foreign = policy.source is not None and Path(data).suffix != Path(policy.source).suffix
    if foreign or is_release(str(Path(data).parent)):
        options = replace(
            DEFAULTS, types=options.types, clean=None if is_release(str(Path(data).parent)) else options.clean
        )
    return data, over(options, given_options)


def read_as(policy: Policy, options: SourceOptions) -> Policy:
    """Return a policy whose source is read as a caller tells, and else as the policy says."""
    return replace(policy, options=over(policy.options, options))


def over(options: SourceOptions, overrides: SourceOptions) -> SourceOptions:
    """Return the options with what a caller tells in their place.

    >>> over(SourceOptions(decimal=",", sheet="2024"), SourceOptions(sheet="2025")).sheet
    '2025'
    """
    values = {field.name: getattr(overrides, field.name) for field in fields(overrides)}
    return replace(options, **{name: value for name, value in values.items() if value != getattr(DEFAULTS, name)})


def settings_of(
    policy: Policy | None, data: str | None, engine: str | None, master: str | None, remote: str | None
) -> Settings:
    """Return where rows are worked on: as the caller says, else as the policy does, else here.

    A release is a folder of this machine, so a policy's cluster is not asked about it.

    >>> settings_of(None, "people.parquet", None, "spark://driver:7077", None).master
    'spark://driver:7077'
    """
    released = data is not None and is_release(data)
    return override(Local() if policy is None or released else policy.engine, engine, master, remote)


def open_release(release: Path) -> Source:
    """Open what was released: the one data file in the folder of a release, or a file that is named itself."""
    return open_source(_data_file(release) if release.is_dir() else release)


def is_release(data: str) -> bool:
    """Whether this is the folder of a release.

    >>> is_release("people.csv")
    False
    """
    return (Path(data) / CERTIFICATE).is_file()


def released_levels(data: str | None) -> dict[str, int]:
    """Return the levels at which a release says that its columns are, where each is at one; nothing for other data.

    >>> released_levels("people.csv")
    {}
    """
    if data is None or not is_release(data):
        return {}
    from incrowd.workflows.certificates import plain_certificate

    try:
        evidence: Any = plain_certificate(Path(data))["evidence"]
        levels = evidence.get("levels", {})
        lists = {str(name): level if isinstance(level, list) else [level] for name, level in levels.items()}
        return {name: int(levels[0]) for name, levels in lists.items() if len(levels) == 1}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InvalidParameter(f"the certificate in {data} cannot be read: give the data file itself.") from None


def _data_file(release: Path) -> Path:
    files = sorted(path for path in release.iterdir() if path.suffix in _FORMATS)
    if any(not is_regular(path) for path in files):
        raise SourceUnreadable(f"{release} contains a link, a device or a pipe: a release consists of files.")
    if len(files) != 1:
        what = "no data file" if not files else f"{len(files)} data files"
        raise SourceUnreadable(f"{release} contains {what}: give the file of one table.")
    return files[0]
