"""A real release in a folder, made once, and copies of it to tamper with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from incrowd.core.codec import encode
from incrowd.errors import InvalidParameter
from incrowd.verifier.check import Verdict
from incrowd.verifier.files import file_of, tables_of
from incrowd.verifier.judge import statement_of
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.registry import check_of
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verification import Verification
from incrowd.workflows.verify.verify import References, verify
from tests.contract.forging import fitting
from tests.policies import PEOPLE, changed, people, written

Step = str | int
Change = Callable[[Any], Any]


@dataclass(frozen=True)
class Keys:
    """A pair of key files."""

    private: Path
    public: Path


@dataclass(frozen=True)
class Folder:
    """A folder with a release in `out`, its policy and its ledger."""

    path: Path

    @property
    def out(self) -> Path:
        return self.path / "out"

    @property
    def ledger(self) -> str:
        return f"sqlite:///{self.path}/.incrowd/ledger.sqlite"

    @property
    def certificate(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.out / "certificate.json").read_text())
        return found

    def tamper(self, steps: tuple[Step, ...], change: Change) -> None:
        """Change one place of the certificate."""
        plain = self.certificate
        place: Any = plain
        for step in steps[:-1]:
            place = place[step]
        last: Any = steps[-1]
        place[last] = change(place[last] if isinstance(place, list) else place.get(last))
        (self.out / "certificate.json").write_text(json.dumps(plain))

    def forge(self, steps: tuple[Step, ...], change: Change) -> None:
        """Change one place of the certificate, as somebody does who knows how its id is made."""
        self.tamper(steps, change)
        rewrite(self.out, self.certificate)

    def copied(self, path: Path) -> Folder:
        shutil.copytree(self.path, path)
        return Folder(path)


def key_pair(folder: Path, name: str = "key") -> Keys:
    """Make a pair of keys in two PEM files."""
    key = Ed25519PrivateKey.generate()
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return Keys(private, public)


def release_into(path: Path, form: str = "csv", key: Path | None = None, **changes: Any) -> Folder:
    """Release people into a new folder."""
    path.mkdir(parents=True, exist_ok=True)
    policy = written(changed(PEOPLE, **changes), path)
    release_to(people(), policy, Destination(path / "out", form, key))
    return Folder(path)


def leaves(value: Any, steps: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    """Yield the way to every value in a tree that is no mapping and no list."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*steps, name))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from leaves(inner, (*steps, place))
    else:
        yield steps


def other(value: Any) -> Any:
    """Return another value of the same kind, as near as can be."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case None:
            return "something"
        case str() if value.replace(".", "", 1).isdigit():
            return value + ("1" if "." in value else ".01")
        case str() if value.replace("/", "", 1).isdigit():
            return value + "7"
        case _:
            return f"{value}x"


def rewrite(folder: Path, plain: dict[str, Any]) -> None:
    """Put another certificate into a folder, with an id that fits."""
    (folder / "certificate.json").write_text(json.dumps(fitting(plain)), encoding="utf-8")


def rehash(folder: Path, name: str) -> None:
    """Let the certificate of a folder name a file's hash and size as they are now."""
    plain = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    place = [output["name"] for output in plain["outputs"]].index(name)
    plain["outputs"][place] = encode(file_of(folder / name))
    rewrite(folder, plain)


def problems(folder: Path, **held: Unpack[References]) -> list[str]:
    """What is wrong with a release: what has failed, or the error of a certificate that cannot be read."""
    try:
        return failed(verify(folder, **held))
    except InvalidParameter as error:
        return [type(error).__name__]


def unreadable(folder: Path) -> bool:
    """Whether the certificate of a folder cannot even be read."""
    try:
        read_certificate(folder)
    except InvalidParameter:
        return True
    return False


def failed(found: Verification) -> list[str]:
    """What a verification says has failed, besides the id, which fails whenever claims, steps or guarantee changed."""
    return [each.about for each in found.findings if each.verdict is Verdict.FAILED and each.about != "id"]


def renamed(found: Verification) -> bool:
    """Whether the id is no longer the one that the certificate's own content has."""
    return any(each.about == "id" and each.verdict is Verdict.FAILED for each in found.findings)


def reopened_from(folder: Path) -> Any:
    """Read what lies in a folder as its certificate says."""
    read = read_certificate(folder)
    files = tuple(folder / file.name for file in tables_of(read))
    return check_of(read.method.name).reopen(statement_of(read), files)
