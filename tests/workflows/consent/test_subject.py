"""Somebody may ask: for which releases was I eligible, at what total loss; from events and ledger alone."""

from __future__ import annotations

import re
from fractions import Fraction
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.errors import AccessDenied
from incrowd.governance.consent import phrases
from incrowd.governance.consent.event import Decided, moment
from incrowd.governance.consent.phrases import LANGUAGES, phrase
from incrowd.governance.consent.registry import Registry
from incrowd.web.app import app
from incrowd.web.settings import Settings
from incrowd.workflows.consent.subject import DataSubjectService, issue_token, subject_report
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from incrowd.workflows.series.series import Series, run_period
from tests.consents import FORM, GATED, consented, known_people
from tests.policies import changed
from tests.web.serving import Browser, FakeQueries, server

ROWS = known_people()
EVERYBODY: list[str] = ROWS["id"].to_pylist()


def test_a_person_is_told_the_releases_of_the_time_in_which_they_consented(tmp_path: Path) -> None:
    made = consented(GATED, tmp_path, EVERYBODY)
    release(ROWS, made.policy)
    made.decide(Decided.WITHDRAW, ["p7"])
    release(ROWS, made.policy)
    left, stayed = (subject_report(made.policy, each) for each in ("p7", "p8"))
    assert (left.consents, stayed.consents) == (False, True)
    assert [len(each.releases) for each in (left, stayed)] == [1, 2]
    assert Fraction(stayed.epsilon) == 2 * Fraction(left.epsilon) > 0
    assert stayed.releases[0] == left.releases[0]
    assert all(each.concluded for each in stayed.releases)
    assert "nobody is told" in left.basis


def test_it_is_told_from_events_and_ledger_alone(tmp_path: Path) -> None:
    # somebody who is not in the data at all, but decided, was eligible as well: whose rows were used is never looked at
    made = consented(GATED, tmp_path, [*EVERYBODY, "nobody"])
    release(ROWS, made.policy)
    assert len(subject_report(made.policy, "nobody").releases) == 1
    assert subject_report(made.policy, "stranger").releases == ()


def test_a_release_without_an_epsilon_has_no_finite_total(tmp_path: Path) -> None:
    made = consented(FORM, tmp_path, EVERYBODY)
    release(ROWS, made.policy)
    assert subject_report(made.policy, "p1").epsilon == "Infinity"


MONTHLY: dict[str, Any] = changed(
    GATED,
    columns__seen={"role": "withheld", "type": "date"},
    period={"column": "seen", "every": "month", "first": "2025-01", "last": "2025-03", "charge": "series"},
    release__delta="1e-9",
)


def test_a_series_that_was_charged_at_once_counts_once_and_whole(tmp_path: Path) -> None:
    made = consented(MONTHLY, tmp_path, EVERYBODY)
    rows = ROWS.append_column("seen", pa.array([f"2025-0{1 + n % 3}-10" for n in range(len(ROWS))]))
    run_period(rows, made.policy, "2025-01", Destination(tmp_path / "january", "csv"))
    made.decide(Decided.WITHDRAW, ["p7"])
    run_period(rows, made.policy, "2025-02", Destination(tmp_path / "february", "csv"))
    left, stayed = (subject_report(made.policy, person) for person in ("p7", "p8"))
    assert [len(report.releases) for report in (left, stayed)] == [1, 2]
    price = Series.of(made.policy).price()
    assert price is not None
    assert Fraction(left.epsilon) == Fraction(stayed.epsilon) == Fraction(price.epsilon) > 0
    assert [release.period for release in stayed.releases] == ["2025-01", "2025-02"]
    assert "for all releases of series periods together" in left.releases[0].cost


def test_before_any_release_nothing_was_lost(tmp_path: Path) -> None:
    made = consented(GATED, tmp_path, EVERYBODY)
    found = subject_report(made.policy, "p1")
    assert found.consents
    assert found.releases == ()
    assert Fraction(found.epsilon) == 0


@pytest.fixture
def made(tmp_path: Path) -> Any:
    return consented(GATED, tmp_path, EVERYBODY)


def client_of(made: Any, tmp_path: Path, asked: bool = True) -> Browser:
    books = server(tmp_path / "books").books
    subjects = DataSubjectService((made.policy,)) if asked else None
    return Browser(app(FakeQueries().current, books, Settings(pace=0.0, logins=1000), None, subjects))


def test_a_page_shows_and_withdraws_under_tokens_that_work_once(made: Any, tmp_path: Path) -> None:
    client, token = client_of(made, tmp_path), issue_token(made.policy, "p7")
    start = client.get("/consent")
    assert start.status_code == 200
    assert "script" not in start.text
    shown = client.post("/consent", data={"token": token})
    assert "You consent to “research/newborns”" in shown.text
    assert client.post("/consent", data={"token": token}).status_code == 403
    following = re.search(r'type="hidden" value="(ic_[^"]+)"', shown.text)
    assert following is not None
    assert "with the button below" in shown.text
    gone = client.post("/consent/withdraw", data={"token": following[1]})
    assert "You do not consent" in gone.text
    assert ["withdrawal is recorded" in page.text for page in (shown, gone)] == [False, True]
    assert "<button>Withdraw</button>" in gone.text, "an id that the holder mistyped can still withdraw"
    assert not subject_report(made.policy, "p7").consents
    assert subject_report(made.policy, "p8").consents
    assert client.post("/consent/withdraw", data={"token": following[1]}).status_code == 403
    assert made.registry.check().ok
    assert "form-action 'self'" in gone.headers["content-security-policy"]


@pytest.mark.parametrize("token", ["", "nonsense", "ic_" + "a" * 43])
def test_whoever_has_no_token_learns_nothing(made: Any, tmp_path: Path, token: str) -> None:
    client = client_of(made, tmp_path)
    replies = [client.post(path, data={"token": token}) for path in ("/consent", "/consent/withdraw")]
    assert {each.status_code for each in replies} == {403}
    assert len({each.text for each in replies}) == 1
    assert client_of(made, tmp_path / "other", asked=False).post("/consent", data={"token": token}).status_code == 403


def test_numbers_for_everybody_do_not_tell_that_somebody_withdrew(made: Any, tmp_path: Path) -> None:
    client = client_of(made, tmp_path)
    before = client.get("/metrics").text
    DataSubjectService((made.policy,)).withdraw(issue_token(made.policy, "p7"))
    client.post("/consent", data={"token": issue_token(made.policy, "p8")})
    assert client.get("/metrics").text == before


def test_a_token_of_another_dataset_or_past_its_end_is_refused(made: Any) -> None:
    late = issue_token(made.policy, "p7", days=-1)
    with pytest.raises(AccessDenied, match="ask the data holder"):
        DataSubjectService((made.policy,)).view(late)
    with pytest.raises(AccessDenied, match="ask the data holder"):
        DataSubjectService(()).view(issue_token(made.policy, "p7"))


@pytest.mark.parametrize("language", list(LANGUAGES))
def test_the_page_speaks_the_language_of_the_browser_or_the_one_that_was_chosen(
    made: Any, tmp_path: Path, language: str
) -> None:
    client = client_of(made, tmp_path)
    start = client.get("/consent", headers={"accept-language": f"pt, {language}-XX;q=0.8"})
    assert f'<html lang="{language}">' in start.text
    assert f'<html lang="{language}">' in client.get(f"/consent?lang={language}").text
    sent = {"token": issue_token(made.policy, "p7"), "lang": language}
    page = client.post("/consent", data=sent).text
    assert phrase(language, "tells", number=50) in unescape(page)
    assert f'name="lang" type="hidden" value="{language}"' in page
    refused = client.post("/consent", data=sent)
    assert phrase(language, "refused") in unescape(refused.text)


def test_every_phrase_is_there_in_every_language_with_the_same_places() -> None:
    for name, texts in phrases._TEXTS.items():
        assert len(texts) == len(LANGUAGES)
        assert len({tuple(sorted(set(re.findall(r"{(\w+)}", text)))) for text in texts}) == 1, name
        assert all(texts) or name == "unreviewed"


def test_a_release_without_an_epsilon_is_told_as_no_bound(tmp_path: Path) -> None:
    form = consented(FORM, tmp_path, EVERYBODY)
    release(ROWS, form.policy)
    page = client_of(form, tmp_path).post("/consent", data={"token": issue_token(form.policy, "p1")}).text
    assert "no bound" in page
    assert "Infinity" not in page
    assert subject_report(form.policy, "p1").number is None


def test_a_loss_is_told_in_two_digits_rounded_up(made: Any, tmp_path: Path) -> None:
    release(ROWS, made.policy)
    report = subject_report(made.policy, "p1")
    shown = {
        code: ("." if code == "en" else ",").join(report.releases[0].short_epsilon.split(".")) for code in LANGUAGES
    }
    assert Fraction(report.releases[0].short_epsilon) >= Fraction(report.epsilon)
    assert all(len(text.lstrip("0.,")) <= 2 for text in shown.values())
    for code in ("en", "de"):
        token = issue_token(made.policy, "p1")
        page = unescape(client_of(made, tmp_path / code).post("/consent", data={"token": token, "lang": code}).text)
        assert f"<dd>{phrase(code, 'bounded', epsilon=shown[code])}</dd>" in page


def test_the_end_of_a_consent_is_told(made: Any) -> None:
    made.decide(Decided.GIVE, ["p7"], valid_to=moment("2999-01-01"))
    report = subject_report(made.policy, "p7")
    assert (report.until, subject_report(made.policy, "p8").until) == (moment("2999-01-01"), None)


def test_somebody_who_withdraws_while_a_release_runs_is_told_that_they_were_eligible(
    made: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clock = Registry.clock

    def interrupted(registry: Registry) -> str:
        made.decide(Decided.WITHDRAW, ["p7"])  # after the end of the registry was read, and before the time of the run
        return clock(registry)

    with monkeypatch.context() as patched:
        patched.setattr(Registry, "clock", interrupted)
        release_to(ROWS, made.policy, Destination(tmp_path / "first", "csv"))
    release_to(ROWS, made.policy, Destination(tmp_path / "second", "csv"))
    left, stayed = (subject_report(made.policy, name) for name in ("p7", "p8"))
    assert [len(report.releases) for report in (left, stayed)] == [1, 2]
    assert not left.consents
