"""Remote: rows behind an address, or on standard input, become private copies here, of one version.

A release reads its rows more than once, and what was checked must be what is released.  So an object is copied once,
as the version that it had, into a file without a name (a link in a private folder leads to it), and ends with the
process.  Credentials come from the environment, by the usual rules of each service, and are never written anywhere.
"""

from __future__ import annotations

import importlib
import io
import os
import re
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from incrowd.engines.worker import count_file, lift_limits
from incrowd.errors import InvalidParameter, PackageMissing, SourceChanged, SourceUnreadable

EXTRAS = {"s3": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az", "abfss": "az"}
"""The schemes of object stores, and the extra that installs what reads them."""
INPUT, INPUT_NAME = "-", "input"
"""The address of standard input, and what its copy is called."""
PATTERN = re.compile(r"[*?\[]")
_FILE, _WEB = "file", "https"
_VERSIONS = ("ETag", "etag", "generation", "VersionId", "md5Hash", "LastModified", "mtime", "created")
"""What services call the version of an object, the surest first."""
_PIECE = 1 << 23  # bytes copied at a time
_TEXT, _WIDE, _LONGEST_LINE = (".csv", ".tsv", ".tab", ".txt"), (b"\xff\xfe", b"\xfe\xff"), 1 << 20
_TAB, _STATISTICS = 9, (b"<stata_dta>", b"HEADER RECORD", b"$FL")
_DESCRIPTORS = Path("/proc/self/fd")
_NEEDED = {"delta": ("deltalake", "Delta tables"), "iceberg": ("pyiceberg.table", "Iceberg tables")}


Fill = Callable[[IO[bytes]], Any]
"""Writes the content of one object into a file."""


@dataclass(frozen=True, eq=False)
class Spool:
    """Copies in a private folder: the path that is opened, the version that was copied, and what keeps them alive."""

    path: Path
    version: str
    held: object


_SPOOLS: dict[str, Spool] = {}
"""What this process copied, by address: an unchanged version is not copied again."""


def is_remote(source: object) -> bool:
    """Whether rows must be copied first: they are behind an address, on standard input, or in a table of many files.

    >>> is_remote("s3://bucket/people.parquet"), is_remote("people.csv"), is_remote("postgresql://host/db")
    (True, False, False)
    """
    text = str(source)
    return text == INPUT or scheme_of(text) in {*EXTRAS, _WEB}


def scheme_of(address: str) -> str:
    """Return the scheme of an address; nothing for a path."""
    return address.partition("://")[0].lower() if "://" in address else ""


def from_file_address(source: str) -> str:
    """Return the path that a `file://` address names, and anything else as it is.

    >>> from_file_address("file:///srv/my%20rows.csv"), from_file_address("rows.csv")
    ('/srv/my rows.csv', 'rows.csv')
    """
    if scheme_of(source) != _FILE:
        return source
    parts = urlsplit(source)
    if parts.netloc not in ("", "localhost"):
        raise SourceUnreadable("a file:// address names a file of this machine: write file:///PATH.")
    return url2pathname(parts.path)


def public_source(address: str) -> str:
    """Return an address without what may be secret in it: a user, a password, a signature.

    >>> public_source("https://data.example.org/people.csv?signature=abc")
    'https://data.example.org/people.csv'
    """
    if "://" not in address:
        return address
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.partition('?')[0].partition('#')[0].rpartition('@')[2]}"


def check_secretless(address: str) -> None:
    """Refuse a policy that holds a signed address, a user or a password: policies are passed around."""
    if scheme_of(address) in {*EXTRAS, _WEB} and address != public_source(address):
        raise InvalidParameter(
            f"{public_source(address)} is written with a user, a password or a query, and policies are passed around. "
            "Leave it out here: name a signed address on the command line, and keep credentials in the environment."
        )


def copied(address: str) -> Spool:
    """Copy what an address names, or return the copy of the same version that this process made."""
    if address == INPUT:
        if INPUT not in _SPOOLS:
            lift_limits()
            _SPOOLS[INPUT] = _from_input(io.BufferedReader(sys.stdin.buffer))  # type: ignore[arg-type]
        return _SPOOLS[INPUT]
    if "@" in urlsplit(address).netloc and scheme_of(address) not in ("abfs", "abfss"):
        raise InvalidParameter("an address must not hold a user or a password: put them into the environment.")
    store = _web if scheme_of(address) == _WEB else _stored
    with _explained(address):
        version, fetch = store(address)
        before = _SPOOLS.get(address)
        if before is None or before.version != version:
            _SPOOLS[address] = before = fetch()
        return before


def _from_input(stream: io.BufferedReader) -> Spool:
    """Copy standard input, whose name says nothing: text is delimited text, unless it begins as a file of statistics.

    Formats with a mark are known by it, whatever the copy is called.
    """
    start = stream.peek(1)[:64]
    binary = any(byte < _TAB for byte in start) and not start.startswith(_WIDE)
    name = INPUT_NAME if binary or start.startswith(_STATISTICS) else f"{INPUT_NAME}.csv"
    spool = _spooled([(name, lambda file: _pump(stream, file))], "read once")
    stream.detach()
    return spool


@contextmanager
def _explained(address: str) -> Iterator[None]:
    """Replace the messages of libraries: they may hold signed addresses, or parts of rows."""
    reason = None
    try:
        yield
    except (InvalidParameter, PackageMissing, SourceUnreadable, SourceChanged):
        raise
    except FileNotFoundError:
        reason = "there is nothing at this address"
    except PermissionError:
        reason = "access is refused: check the credentials in the environment"
    except Exception as error:  # noqa: BLE001 - each service has errors of its own
        reason = f"the service could not be read ({type(error).__name__}); check the address and the credentials"
    if reason is not None:
        raise SourceUnreadable(f"{public_source(address)} cannot be read: {reason}.")


def _web(address: str) -> tuple[str, Callable[[], Spool]]:
    """Read one file by HTTPS: one reply is one version."""
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class Staying(HTTPRedirectHandler):
        def redirect_request(self, *reply: Any) -> Any:
            if scheme_of(reply[-1]) != _WEB:
                raise SourceUnreadable(f"{public_source(address)} leads to an address without HTTPS.")
            return super().redirect_request(*reply)

    reply = build_opener(Staying).open(Request(address), timeout=60)  # noqa: S310 - HTTPS alone comes here
    version = str(reply.headers.get("ETag") or reply.headers.get("Last-Modified") or "unstated").strip('"')
    length = reply.headers.get("Content-Length")

    def fill(file: IO[bytes]) -> None:
        with reply:
            size = _pump(reply, file, address)
        if length is not None and size != int(length):
            raise SourceUnreadable(f"{public_source(address)} ended before its last byte. Try again.")

    name = PurePosixPath(unquote(urlsplit(address).path)).name or "data"
    return version, lambda: _spooled([(name, fill)], version)


def _stored(address: str) -> tuple[str, Callable[[], Spool]]:
    """Read an object, the Parquet files below a prefix, or a table of many files, from an object store."""
    lift_limits()  # the rows come from the data holder's own account
    files = filesystem(address)
    root = _root(files, address)
    if PATTERN.search(root):
        names = sorted(files.glob(root))
    elif files.isfile(root):
        names = [root]
    elif table := table_of(address, lambda name: files.exists(f"{root}/{name}")):
        return table
    else:
        names = [name for name in sorted(files.find(root)) if _is_part(name[len(root) :])]
    if not names:
        raise SourceUnreadable(
            f"{public_source(address)} names no file, and there is no *.parquet file below it. Check the address."
        )
    infos = [files.info(name) for name in names]
    version = "; ".join(dict.fromkeys(_version(info) for info in infos))
    return version, lambda: _together(names, [_fetching(files, info) for info in infos], version)


def matched(pattern: str) -> Spool:
    """Return the files of this machine that a pattern names, as one table; Parquet files are linked, not copied."""
    start = next(at for at, part in enumerate(Path(pattern).parts) if PATTERN.search(part))
    base = Path(*Path(pattern).parts[:start])
    files = sorted(path for path in base.glob(str(Path(*Path(pattern).parts[start:]))) if path.is_file())
    if not files:
        raise SourceUnreadable(f"no file is called {pattern}. Check the pattern; it is relative to {Path.cwd()}.")
    if all(path.suffix == ".parquet" for path in files):
        folder = _PrivateFolder()
        for path in files:
            folder.place(path.relative_to(base).as_posix()).symlink_to(path.absolute())
        return Spool(folder.path, "", folder)
    return _together([path.as_posix() for path in files], [partial(_copy, path) for path in files], "")


def _copy(path: Path, file: IO[bytes]) -> None:
    with path.open("rb") as source:
        _pump(source, file)


def _together(names: Sequence[str], fills: Sequence[Fill], version: str) -> Spool:
    """Copy files as one table: Parquet files into a folder, text files with the same first line one after the other."""
    if len(names) == 1:
        return _spooled([(PurePosixPath(names[0]).name, fills[0])], version)
    base = os.path.commonpath([PurePosixPath(name).parent for name in names])
    if all(name.endswith(".parquet") for name in names):
        return _spooled([(os.path.relpath(name, base), fill) for name, fill in zip(names, fills, strict=True)], version)
    ending = PurePosixPath(names[0]).suffix.lower()
    if ending not in _TEXT or any(PurePosixPath(name).suffix.lower() != ending for name in names):
        raise SourceUnreadable(
            "a pattern or folder of several files names Parquet files, or text files with one ending (.csv, .tsv or "
            ".txt, not compressed). Name one file."
        )
    return _spooled([(f"table{ending}", partial(_join, fills))], version)


def _join(fills: Sequence[Fill], file: IO[bytes]) -> None:
    header = None
    for fill in fills:
        with tempfile.TemporaryFile(prefix="incrowd-") as part:
            fill(part)
            part.seek(0)
            first = part.readline(_LONGEST_LINE)
            if header is None:
                header = first
                file.write(first if first.endswith(b"\n") else first + b"\n")
            if first.rstrip(b"\r\n") != header.rstrip(b"\r\n") or first[:2] in _WIDE:
                raise SourceUnreadable(
                    "text files of one table need the same first line, with the names of the columns, in an encoding "
                    "such as UTF-8. Nothing was read."
                )
            while piece := part.read(_PIECE):
                file.write(piece)
                last = piece[-1:]
            if part.tell() > len(first) and last != b"\n":
                file.write(b"\n")


def filesystem(address: str) -> Any:
    """Return the file system of an object store, by the credentials of the environment."""
    import fsspec

    scheme = scheme_of(address)
    try:
        return fsspec.filesystem(scheme, use_listings_cache=False, skip_instance_cache=True)
    except ImportError:
        raise PackageMissing(
            f"{scheme}:// addresses need packages that are not installed. Run: pip install 'incrowd[{EXTRAS[scheme]}]'"
        ) from None


def _root(files: Any, address: str) -> str:
    return str(files._strip_protocol(address)).rstrip("/")  # noqa: SLF001 - the one way from an address to a name


def _is_part(name: str) -> bool:
    parts = PurePosixPath(name.lstrip("/")).parts
    return name.endswith(".parquet") and not any(part.startswith((".", "_")) for part in parts)


def _version(info: Mapping[str, Any]) -> str:
    stated = next((info[name] for name in _VERSIONS if info.get(name)), "unstated")
    return f"{str(stated).strip(chr(34))}"


def _fetching(files: Any, info: Mapping[str, Any]) -> Callable[[IO[bytes]], None]:
    def fill(file: IO[bytes]) -> None:
        name = info["name"]
        with files.open(name, "rb", block_size=_PIECE, cache_type="readahead") as remote:
            size = _pump(remote, file)
        after = files.info(name)
        if size != info["size"] or (_version(after), after["size"]) != (_version(info), info["size"]):
            raise SourceChanged(f"{PurePosixPath(name).name} changed while it was copied. Start again.")

    return fill


def _pump(source: Any, file: IO[bytes], address: str | None = None) -> int:
    size = 0
    while piece := source.read(_PIECE):
        file.write(piece)
        size += len(piece)
        if address is not None:
            count_file(public_source(address), size)
    return size


class _PrivateFolder:
    """A folder that its owner alone can enter, and the open files that its links lead to; both end with this object."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="incrowd-"))
        self._descriptors: list[int] = []
        weakref.finalize(self, _end, self.path, self._descriptors)

    def place(self, name: str) -> Path:
        """Return where a file of this name goes."""
        path = self.path.joinpath(*(part for part in PurePosixPath(name).parts if part not in ("..", "/")))
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path

    def fill(self, name: str, fill: Fill) -> None:
        """Fill a file without a name, and link to it; where that is not possible, a file of mode 0600."""
        path = self.place(name)
        if not _DESCRIPTORS.is_dir():
            with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as named:
                fill(named)
            return
        with tempfile.TemporaryFile(prefix="incrowd-") as file:
            self._descriptors.append(os.dup(file.fileno()))
            fill(file)
        path.symlink_to(_DESCRIPTORS / str(self._descriptors[-1]))


def _end(folder: Path, descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
    shutil.rmtree(folder, ignore_errors=True)


def _spooled(parts: Sequence[tuple[str, Fill]], version: str) -> Spool:
    folder = _PrivateFolder()
    for name, fill in parts:
        folder.fill(name, fill)
    single = len(parts) == 1 and "/" not in parts[0][0]
    return Spool(folder.place(parts[0][0]) if single else folder.path, version, folder)


def table_of(address: str, holds: Callable[[str], bool]) -> tuple[str, Callable[[], Spool]] | None:
    """Return the version of a Delta or Iceberg table and what copies it; None where there is none.

    `holds` tells whether a name exists below the address.
    """
    if holds("_delta_log"):
        table = _package("delta").DeltaTable(address)
        version = f"delta {table.version()}"

        def rows() -> Any:
            return table.to_pyarrow_dataset().scanner(batch_size=1 << 17, use_threads=False).to_reader()

        return version, lambda: _spooled([("table.parquet", lambda file: _as_parquet(rows(), file))], version)
    if holds("metadata") and _metadata_files(address):
        table = _package("iceberg").StaticTable.from_metadata(_metadata_files(address)[-1])
        snapshot = table.current_snapshot()
        version = f"iceberg {'empty' if snapshot is None else snapshot.snapshot_id}"
        scan = table.scan()
        return version, lambda: _spooled(
            [("table.parquet", lambda file: _as_parquet(scan.to_arrow_batch_reader(), file))], version
        )
    return None


def _metadata_files(address: str) -> list[str]:
    """Return the metadata files of an Iceberg table without a catalog, the newest (of the highest number) last."""
    if scheme_of(address):
        names = filesystem(address).glob(f"{address.rstrip('/')}/metadata/*.metadata.json")
        names = [f"{scheme_of(address)}://{name}" for name in names]
    else:
        names = [path.as_posix() for path in Path(address, "metadata").glob("*.metadata.json")]
    return sorted(names, key=lambda name: [int(number) for number in re.findall(r"\d+", PurePosixPath(name).name)[:1]])


def _package(extra: str) -> Any:
    module, what = _NEEDED[extra]
    try:
        return importlib.import_module(module)
    except ImportError:
        raise PackageMissing(
            f"{what} need a package that is not installed. Run: pip install 'incrowd[{extra}]'"
        ) from None


def _as_parquet(rows: Any, file: IO[bytes]) -> None:
    from pyarrow import parquet as pq

    with pq.ParquetWriter(file, rows.schema, compression="zstd") as writer:
        for batch in rows:
            writer.write_batch(batch)
