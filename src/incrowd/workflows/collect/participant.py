"""Participant: answers a survey from Python: randomizes here, keeps the report before it is sent, and its own bound."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from incrowd.errors import InvalidParameter, OutputUnavailable, Refused, ServerUnavailable
from incrowd.methods.local.survey.definition import LocalSurvey, report_text
from incrowd.methods.local.survey.published import survey_from
from incrowd.noise.system import SystemCoins
from incrowd.store.disk import force

_SPENT = "spent.json"
_LARGEST = 2**24


@dataclass(frozen=True)
class Participant:
    """One person with a folder of their own: which reports were made, and what they lost in all.

    `limit` is the person's own bound over all surveys; that of a survey (`per_person`) holds besides.
    """

    folder: Path
    limit: Fraction | None = None

    def report(self, survey: LocalSurvey, answers: Mapping[str, str]) -> str:
        """Return the report to a survey: the one that was made before, or a new one that is kept first.

        Refuse one more report than the bound allows; nothing is randomized then.
        """
        kept = self.folder / f"{survey.id}.json"
        if kept.is_file():
            return kept.read_text(encoding="utf-8")
        spent = self._spent()
        total = sum(map(Fraction, spent.values()), survey.epsilon)
        bounds = [bound for bound in (self.limit, survey.per_person) if bound is not None]
        if bounds and total > min(bounds):
            raise Refused(
                f"this report would bring what you lost over all surveys to epsilon {float(total):g}, above your bound "
                f"of {float(min(bounds)):g}. Nothing was randomized or sent."
            )
        (report,) = survey.randomize({name: [answer] for name, answer in answers.items()}, SystemCoins())
        self._write(_SPENT, json.dumps({**spent, survey.id: str(survey.epsilon)}))
        self._write(kept.name, report_text(report))
        return kept.read_text(encoding="utf-8")

    def send(self, address: str, answers: Mapping[str, str], token: str) -> str:
        """Answer the survey at an address; sent again, the same bytes are sent. Return what became of the report."""
        survey = survey_at(address)
        sent = json.dumps({"reports": [{"token": token, "report": json.loads(self.report(survey, answers))}]})
        told = _ask(f"{address.rstrip('/')}/reports", sent.encode())
        return str(told["receipts"][0])

    def _spent(self) -> dict[str, str]:
        try:
            return dict(json.loads((self.folder / _SPENT).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            raise InvalidParameter(f"{self.folder / _SPENT} cannot be read, which counts what was lost.") from None

    def _write(self, name: str, text: str) -> None:
        beside = self.folder / f".{name}.{os.getpid()}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            beside.write_text(text, encoding="utf-8")
            beside.chmod(0o600)
            force(beside)
            beside.replace(self.folder / name)
            force(self.folder)
        except OSError as error:
            raise OutputUnavailable(f"{self.folder} cannot be written: {error.strerror or 'no reason'}.") from None


def survey_at(address: str) -> LocalSurvey:
    """Return the survey that a collector publishes at an address, checked."""
    return survey_from(_ask(f"{address.rstrip('/')}/survey.json"))


def _ask(address: str, body: bytes | None = None) -> dict[str, Any]:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidParameter("the address of a collector is written like https://host:8000.")
    request = Request(address, body, {"content-type": "application/json"})  # noqa: S310 - the scheme was checked
    try:
        with urlopen(request, timeout=60) as reply:  # noqa: S310 - the scheme was checked
            text = reply.read(_LARGEST)
    except HTTPError as error:
        raise Refused(_told(error)) from None
    except (URLError, OSError, TimeoutError):
        raise ServerUnavailable("the collector was not reached: send again, the same report is sent.") from None
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError):
        raise ServerUnavailable("this address does not answer as a collector does.") from None


def _told(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read(_LARGEST))["error"])
    except (ValueError, KeyError, TypeError):
        return f"the collector refused, with status {error.code}."
