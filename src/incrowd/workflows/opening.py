"""Opening: the rows that a verb looks at, in the policy's source, in a file named beside it, or in a release."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from incrowd.engines.options import DEFAULTS, SourceOptions
from incrowd.engines.sources import Source, open_source
from incrowd.errors import InvalidParameter, SourceUnreadable
from incrowd.workflows.policy import Policy

CERTIFICATE = "certificate.json"
_FORMATS = (".parquet", ".csv", ".tsv")


def open_rows(data: str | None, policy: Policy | None, nulls: tuple[str, ...] = ()) -> Source:
    """Open the data that was named, or else the policy's source; no row is read.

    How the policy says that its source is read holds for another file too, if its name has the same ending; the folder
    of a release, and a file of another kind, are read as what they are.
    """
    options = DEFAULTS if policy is None else policy.options
    if data is None:
        if policy is None or policy.source is None:
            raise InvalidParameter("no data: name a file, or a policy that has a source.")
        return open_source(policy.source, _with(options, nulls))
    if (Path(data) / CERTIFICATE).is_file():
        return open_release(Path(data))
    foreign = policy is not None and policy.source is not None and Path(data).suffix != Path(policy.source).suffix
    return open_source(data, _with(DEFAULTS if foreign else options, nulls))


def open_release(release: Path) -> Source:
    """Open what was released: the one data file in the folder of a release, or a file that is named itself."""
    if not release.is_dir():
        return open_source(release)
    found = sorted(path for path in release.iterdir() if path.suffix in _FORMATS)
    if len(found) != 1:
        what = "no data file" if not found else f"{len(found)} data files"
        raise SourceUnreadable(f"{release} holds {what}; a release holds one. Name the file itself.")
    return open_source(found[0])


def _with(options: SourceOptions, nulls: tuple[str, ...]) -> SourceOptions:
    return replace(options, nulls=("", *nulls)) if nulls else options
