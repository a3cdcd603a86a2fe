"""Participant: answers a survey from Python: randomizes here, once for each token, and keeps its own bound."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from incrowd.errors import InvalidParameter, OutputUnavailable, Refused, ServerUnavailable
from incrowd.methods.local.survey.definition import LocalSurvey, report_text, survey_from
from incrowd.noise.system import SystemCoins
from incrowd.store.disk import force

_SPENT = "spent.json"
_LARGEST = 2**24  # bytes of a server's reply that are read: it must not fill the memory
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Participant:
    """One person with a folder of their own, who answers surveys.

    In the folder stays `spent.json`: for each token that was used, a digest of survey and token, and the ε of its
    report.  It is written before a report can leave, so that no token is randomized for twice, not even by a later
    process, and so that a collector that withholds its replies gets no second report.  Survey, token, report and answer
    cannot be read from it.

    In this object stays the text of each report, until the object ends: if no reply came, `send` sends the same bytes
    again.  Answers and random numbers are not kept anywhere.  What an earlier version stored, reports by survey, is
    removed; the ε of those reports stays counted.

    `limit` is the person's own bound over all surveys; that of a survey (`per_person`) holds besides.
    """

    folder: Path
    limit: Fraction | None = None
    _reports: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def report(self, survey: LocalSurvey, answers: Mapping[str, str], token: str) -> str:
        """Return the report that a token sends: the one that this object made before, or a new one.

        Refuse a token that was used before, and one more report than the bound allows; nothing is randomized then.
        """
        place = _place(survey.id, token)
        if place in self._reports:
            return self._reports[place]
        spent = self._spent()
        if place in spent:
            raise Refused(
                "this token was used before, and its report is not kept. Nothing was randomized or sent. If no reply "
                "came, tell the person who invited you."
            )
        self._check_bound(survey, sum(map(Fraction, spent.values()), survey.epsilon))
        (report,) = survey.randomize({name: [answer] for name, answer in answers.items()}, SystemCoins())
        self._write(_SPENT, json.dumps({**spent, place: str(survey.epsilon)}))
        return self._reports.setdefault(place, report_text(report))

    def send(self, address: str, answers: Mapping[str, str], token: str) -> str:
        """Answer the survey at an address; sent again, the same bytes are sent. Return what became of the report."""
        survey = survey_at(address)
        report = json.loads(self.report(survey, answers, token))
        sent = json.dumps({"reports": [{"token": token, "report": report}]})
        reply = _ask(f"{address.rstrip('/')}/reports", sent.encode())
        return str(reply["receipts"][0])

    def _check_bound(self, survey: LocalSurvey, total: Fraction) -> None:
        bounds = [bound for bound in (self.limit, survey.per_person) if bound is not None]
        if bounds and total > min(bounds):
            raise Refused(
                f"this report would bring what you lost over all surveys to epsilon {float(total):g}, above your bound "
                f"of {float(min(bounds)):g}. Nothing was randomized or sent."
            )

    def _spent(self) -> dict[str, str]:
        """Return the ε of each token that was used, and remove the reports that an earlier version stored."""
        try:
            spent = {str(place): str(Fraction(epsilon)) for place, epsilon in self._read().items()}
            for place in filter(_DIGEST.fullmatch, spent):
                (self.folder / f"{place}.json").unlink(missing_ok=True)
        except (OSError, ValueError, TypeError, AttributeError, ZeroDivisionError):
            raise InvalidParameter(f"{self.folder / _SPENT} cannot be read, which counts what was lost.") from None
        return spent

    def _read(self) -> dict[str, str]:
        try:
            return dict(json.loads((self.folder / _SPENT).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return {}

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


def _place(survey: str, token: str) -> str:
    """Return the digest by which a used token is remembered; a browser's page has the same."""
    return sha256(f"incrowd used token 1\n{survey}\n{token}".encode()).hexdigest()


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
        raise Refused(_message(error)) from None
    except (URLError, OSError, TimeoutError):
        raise ServerUnavailable(
            "the collector was not reached: call send once more on this object, which sends the same report."
        ) from None
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError):
        raise ServerUnavailable("this address does not answer as a collector does.") from None


def _message(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read(_LARGEST))["error"])
    except (ValueError, KeyError, TypeError):
        return f"the collector refused, with status {error.code}."
