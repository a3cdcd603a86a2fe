"""Hostile releases and policies: certificates that are too large, too deep, or point elsewhere."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.released import leaves

MARK = "outside-of-the-release"
"""What a file outside holds; no verb may show it."""
Make = Callable[[Path], list[str]]
"""Makes a hostile file in an empty folder that has a release in `out`, and returns the words of a command."""
LARGE = 60_000_000


def _certificate(text: str | bytes, folder: Path) -> list[str]:
    content = text if isinstance(text, bytes) else text.encode()
    (folder / "out" / "certificate.json").write_bytes(content)
    return ["verify", "out"]


def _changed(folder: Path, change: Callable[[dict[str, Any]], None]) -> list[str]:
    plain = json.loads((folder / "out" / "certificate.json").read_text())
    change(plain)
    return _certificate(json.dumps(plain), folder)


def _numbers(part: str, number: int | str) -> Make:
    """Put a number into every place of one part of a certificate that has one."""

    def change(plain: dict[str, Any]) -> None:
        for way in list(leaves(plain[part])):
            place: Any = plain[part]
            for step in way[:-1]:
                place = place[step]
            last: Any = way[-1]
            value = place[last]
            if type(value) is int and last not in ("version", "guarantee"):
                place[last] = number if isinstance(number, int) else 10**18
            elif isinstance(value, str) and value.replace("/", "").replace(".", "").isdigit():
                place[last] = str(number)

    return lambda folder: _changed(folder, change)


def _repeated(part: str, times: int) -> Make:
    def make(folder: Path) -> list[str]:
        return _changed(folder, lambda plain: plain.update({part: plain[part] * times}))

    return make


def _named(name: str) -> Make:
    def make(folder: Path) -> list[str]:
        (folder / "outside.csv").write_text(f"{MARK}\n1\n")
        return _changed(folder, lambda plain: plain["outputs"][0].update(name=name))

    return make


def _replaced(name: str, put: Callable[[Path], None], verb: str = "verify") -> Make:
    """Put something else in the place of a file of the release."""

    def make(folder: Path) -> list[str]:
        (folder / "outside.csv").write_text(f"{MARK}\n1\n")
        place = folder / "out" / name
        place.unlink()
        put(place)
        return [verb, "out"]

    return make


def _socket(place: Path) -> None:
    here = Path.cwd()
    os.chdir(place.parent)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(place.name)
    os.chdir(here)


def _link(target: str) -> Callable[[Path], None]:
    return lambda place: place.symlink_to(target)


def _policy(text: str) -> Make:
    def make(folder: Path) -> list[str]:
        (folder / "foreign.yaml").write_text(text)
        return ["verify", "out", "--policy", "foreign.yaml"]

    return make


def _folder_in_place(place: Path) -> None:
    place.mkdir()


def _exchange(folder: Path) -> list[str]:
    shutil.rmtree(folder / "out")
    (folder / "out").symlink_to("out")
    return ["verify", "out"]


_ALIASES = "incrowd: 1\na: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + number)}: &{chr(98 + number)} [{','.join([f'*{chr(97 + number)}'] * 9)}]\n" for number in range(9)
)

_ABSURD: dict[str, int | str] = {
    "1e999999999": "1e999999999",
    "10^18": 10**18,
    "100,000": 100_000,
    "1e-400": "1/1" + "0" * 400,
    "-1": -1,
}

DOCUMENTS: dict[str, Make] = {
    "certificate: 60 MB of {}": lambda folder: _certificate("[" + "{}," * (LARGE // 3) + "{}]", folder),
    "certificate: 15 MB of {}": lambda folder: _certificate('{"a":[' + "{}," * 5_000_000 + "{}]}", folder),
    "certificate: lists 10 million deep": lambda folder: _certificate("[" * 10_000_000, folder),
    "certificate: objects 100,000 deep": lambda folder: _certificate('{"a":' * 100_000 + "1" + "}" * 100_000, folder),
    "certificate: evidence 900 deep": lambda folder: _changed(
        folder, lambda plain: plain.update(evidence=json.loads('{"a":' * 900 + "1" + "}" * 900))
    ),
    "certificate: an integer of 10 million digits": lambda folder: _certificate('{"a":' + "9" * 10**7 + "}", folder),
    **{
        f"certificate: {part} with {text}": _numbers(part, number)
        for part in ("steps", "claims", "guarantee")
        for text, number in _ABSURD.items()
    },
    "certificate: evidence of 1e999999999": lambda folder: _changed(
        folder, lambda plain: plain["evidence"].update(rows="1e999999999")
    ),
    "certificate: not a number": lambda folder: _certificate('{"certificate":NaN,"steps":Infinity}', folder),
    "certificate: 20,000 times its steps": _repeated("steps", 20_000),
    "certificate: 400 times its steps": _repeated("steps", 400),
    "certificate: 20,000 times its claims": _repeated("claims", 20_000),
    "certificate: 100,000 times its files": _repeated("outputs", 100_000),
    "certificate: no steps": _repeated("steps", 0),
    "certificate: no claims": _repeated("claims", 0),
    "certificate: a text of 60 MB": lambda folder: _certificate('{"a":"' + "x" * LARGE + '"}', folder),
    "certificate: an id of 10 MB": lambda folder: _changed(folder, lambda plain: plain.update(id="x" * 10**7)),
    "certificate: 3 million keys": lambda folder: _certificate(
        "{" + ",".join(f'"{number}":0' for number in range(3 * 10**6)) + "}", folder
    ),
    "certificate: not text": lambda folder: _certificate(b"\xff\xfe\x00" * 10**6, folder),
    "certificate: empty": lambda folder: _certificate("", folder),
    "certificate: a pipe": _replaced("certificate.json", os.mkfifo),
    "certificate: a socket": _replaced("certificate.json", _socket),
    "certificate: a folder": _replaced("certificate.json", _folder_in_place),
    "certificate: a link to a device": _replaced("certificate.json", _link("/dev/zero")),
    "certificate: a link outside": _replaced("certificate.json", _link("../outside.csv")),
    "certificate: a link to itself": _replaced("certificate.json", _link("certificate.json")),
    "release: a link to itself": _exchange,
    "release: data is a pipe": _replaced("data.csv", os.mkfifo),
    "release: data is a socket": _replaced("data.csv", _socket),
    "release: data is a device": _replaced("data.csv", _link("/dev/zero")),
    "release: data is a link outside": _replaced("data.csv", _link("../outside.csv")),
    "release: data is a folder": _replaced("data.csv", _folder_in_place),
    "release: data named ../outside.csv": _named("../outside.csv"),
    "release: data named by an absolute path": _named("/etc/hostname"),
    "release: data named with a null": _named("data\0.csv"),
    "release: data is a pipe, for check": _replaced("data.csv", os.mkfifo, "check"),
    "release: data is a link outside, for check": _replaced("data.csv", _link("../outside.csv"), "check"),
    "release: data is a link outside, for profile": _replaced("data.csv", _link("../outside.csv"), "profile"),
    "release: certificate is a pipe, for report": _replaced("certificate.json", os.mkfifo, "report"),
    "release: the report is a pipe": _replaced("report.html", os.mkfifo),
    "release: the report is a device": _replaced("report.html", _link("/dev/zero")),
    "policy: aliases that grow to 9^10": _policy(_ALIASES),
    "policy: 60 MB": _policy("incrowd: 1\n" + "a: [" + "x, " * (LARGE // 3) + "]"),
    "policy: lists 100,000 deep": _policy("incrowd: 1\na: " + "[" * 100_000),
    "policy: 1.9 MB of brackets": _policy("incrowd: 1\na: [" + "[]," * 600_000 + "[]]"),
    "policy: numbers of 1e999999999": _policy(
        "incrowd: 1\ndataset: {name: x}\nrelease: {method: safe, k: 1e999999999}"
    ),
}
