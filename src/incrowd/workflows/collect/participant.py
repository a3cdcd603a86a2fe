"""Participant: answers a survey from Python: randomizes here, once for each token, and keeps its own bound."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
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

_SPENT, _PERMANENT = "spent.json", "permanent.json"
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

    Of a memoized survey there stays `permanent.json`, as secret as the answers: the permanent answers, drawn for all
    values before the first answer, and which of them were used, in the order of use.  It may be copied to another
    device; if it is lost, this person takes part no more.  Its ε is counted once, for all rounds.

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
        if survey.memoized:
            return self._memoized(survey, answers, token, spent)
        self._check_bound(survey, sum(map(Fraction, spent.values()), survey.epsilon))
        number = None if survey.rounds is None else round_of(token)
        (report,) = survey.randomize({name: [answer] for name, answer in answers.items()}, SystemCoins(), number)
        self._write(_SPENT, json.dumps({**spent, place: str(survey.epsilon)}))
        return self._reports.setdefault(place, report_text(report))

    def _memoized(self, survey: LocalSurvey, answers: Mapping[str, str], token: str, spent: Mapping[str, str]) -> str:
        """Return the report of one round, from permanent answers that are drawn before this person's first one."""
        if set(answers) != set(survey.names):
            raise InvalidParameter(f"the survey asks {', '.join(survey.names)}: answer each of them.")
        codes = {question.name: int(question.codes([answers[question.name]])[0]) for question in survey.questions}
        first, stored = _place(survey.id, _PERMANENT), self._read(_PERMANENT)
        if first not in stored:
            if first in spent:
                raise Refused(
                    f"{self.folder / _PERMANENT} does not hold the permanent answers to this survey any more, and new "
                    "ones would reveal more. Nothing was randomized or sent. Put the file back, or take part no more."
                )
            self._check_bound(survey, sum(map(Fraction, spent.values()), survey.epsilon))
            stored = {**stored, first: {"memos": survey.memos(SystemCoins()), "used": {}}}
            spent = {**spent, first: str(survey.epsilon)}
            self._write(_SPENT, json.dumps(spent))
        used, values = next_values(survey, stored[first]["used"], codes)
        report = survey.report_round(stored[first]["memos"], values, round_of(token), SystemCoins())
        self._write(_PERMANENT, json.dumps({**stored, first: {**stored[first], "used": used}}))
        self._write(_SPENT, json.dumps({**spent, _place(survey.id, token): "0"}))
        return self._reports.setdefault(_place(survey.id, token), report_text(report))

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
            spent = {str(place): str(Fraction(epsilon)) for place, epsilon in self._read(_SPENT).items()}
            for place in filter(_DIGEST.fullmatch, spent):
                (self.folder / f"{place}.json").unlink(missing_ok=True)
        except (OSError, ValueError, TypeError, AttributeError, ZeroDivisionError):
            raise InvalidParameter(f"{self.folder / _SPENT} cannot be read, which counts what was lost.") from None
        return spent

    def _read(self, name: str) -> dict[str, Any]:
        try:
            return dict(json.loads((self.folder / name).read_text(encoding="utf-8")))
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


def next_values(
    survey: LocalSurvey, used: Mapping[str, Sequence[int]], codes: Mapping[str, int]
) -> tuple[dict[str, list[int]], dict[str, int]]:
    """Return which values of each question were used, the newest last, and which permanent answer is reported.

    After as many different answers as the survey reports, a new one repeats the permanent answer that was used last.
    """
    most = 1 if survey.rounds is None else survey.rounds.distinct or 1
    orders, values = {}, {}
    for question in survey.questions:
        before, code = list(used.get(question.name, [])), codes[question.name]
        value = code if code in before or len(before) < most else before[-1]
        orders[question.name] = [*(other for other in before if other != value), value]
        values[question.name] = value
    return orders, values


def round_of(token: str) -> int:
    """Return the round of a token, which its first four digits name; refuse one that is not written like a token."""
    if not _DIGEST.fullmatch(token):
        raise InvalidParameter("a token has 64 letters and digits, as the person who invited you sent it.")
    return int(token[:4], 16)


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
