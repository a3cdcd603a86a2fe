"""Certificates as they are stored: read within limits, with the steps and claims of admitted methods."""

from __future__ import annotations

import json
from pathlib import Path

from incrowd.core.certificate import Certificate
from incrowd.core.codec import RepeatedKey, unrepeated
from incrowd.core.limits import CERTIFICATE_BYTES, check_depth, check_size
from incrowd.engines.regular_file import read_bounded
from incrowd.errors import InvalidParameter
from incrowd.verifier.files import CERTIFICATE
from incrowd.workflows.registry import require_admitted, vocabulary


def read_certificate(path: Path) -> Certificate:
    """Read a certificate from its file, or from the folder of its release."""
    return certificate_of(plain_certificate(path))


def plain_certificate(path: Path) -> dict[str, object]:
    """Read the JSON of a certificate; one that is larger, deeper or longer than certificates are is refused."""
    file = path / CERTIFICATE if path.is_dir() else path
    try:
        content = read_bounded(file, CERTIFICATE_BYTES)
        check_size(content, "a certificate")
        plain: dict[str, object] = json.loads(content.decode("utf-8"), object_pairs_hook=unrepeated)
    except OSError as error:
        raise InvalidParameter(f"{file} cannot be read: {error.strerror or 'no reason given'}.") from None
    except InvalidParameter:
        raise
    except RepeatedKey:
        raise InvalidParameter(f"{file} is not a certificate: an object in it has a key twice.") from None
    except (ValueError, RecursionError):  # no text, no JSON, nested for ever, or a number of thousands of digits
        plain = {}
    if not plain or not isinstance(plain, dict):
        raise InvalidParameter(f"{file} is not a certificate: it is not a JSON object.")
    check_depth(plain, "a certificate")
    return plain


def certificate_of(plain: dict[str, object]) -> Certificate:
    """Read the plain form of a certificate."""
    require_admitted(str(_name(plain)), plain.get("steps"))
    return Certificate.from_json(plain, vocabulary)


def _name(plain: dict[str, object]) -> object:
    method = plain.get("method")
    return method.get("name") if isinstance(method, dict) else None
