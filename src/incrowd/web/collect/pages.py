"""Pages of a collector: the form of a survey, and what its reports say so far; nothing comes from elsewhere."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from incrowd.methods.local.estimates import QuestionEstimates
    from incrowd.methods.local.survey.definition import LocalSurvey

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; }
input, select, button { font: inherit; padding: 0.3rem 0.5rem; max-width: 100%; }
fieldset { border: 0; margin: 0; padding: 0; min-width: 0; }
#token { width: 100%; box-sizing: border-box; font-family: ui-monospace, monospace; }
pre, code, li { font: 14px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; white-space: pre-wrap; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: 0.2rem 1rem 0.2rem 0; }
[role=status] { font-weight: 700; }
@media (prefers-color-scheme: dark) { body { background: #16181b; color: #e8e8e8; } a { color: #8ab4f8; } }
"""
_STYLE_HASH = base64.b64encode(sha256(_STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'sha256-{_STYLE_HASH}'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


def guarantee(survey: LocalSurvey) -> str:
    """Return what a report betrays at most, in a number that is rounded up."""
    factor = f"{math.ceil(100 * math.exp(survey.epsilon)) / 100:,.2f}"
    return f"Every report is at most {factor} times as likely under one answer as under any other. {_PART}"


_PART = "That you took part is not hidden."


def form(survey: LocalSurvey) -> str:
    """Return the page on which a survey is answered."""
    hashes = "".join(f"<li>{escape(name)}: {escape(mark)}</li>" for name, mark in survey.scripts.items())
    several = "" if len(survey.questions) == 1 else " One of your answers is picked at random; the others are ignored."
    purpose = "" if survey.purpose is None else f"<p>The purpose of this survey: {escape(survey.purpose)}.</p>"
    body = f"""{purpose}
<p>Your answer is randomized here, in your browser, before anything is sent.{several} <span id="promise"></span> {_PART}
The browser stores that your token was used, and nothing about your answer.</p>
<form id="form" autocomplete="off"><fieldset id="entries">
<p><label for="token">Your token</label><br><input id="token" autocomplete="off" spellcheck="false"></p>
<div id="questions"></div><p><button>Randomize</button></p></fieldset></form>
<section id="result" hidden>
<h2>What will be sent</h2><pre id="sent"></pre>
<details><summary>Random numbers used</summary><ol id="coins"></ol></details>
<p><button id="send" type="button">Send</button> <button id="again" type="button">Discard and start again</button></p>
</section>
<p id="message" role="status"></p>
<details><summary>The scripts of this page, by their SHA-256</summary><ul>{hashes}</ul>
<p>They are those that the <a href="certificate.json">certificate</a> names.</p></details>
<p><a href="estimates">Results so far</a></p>"""
    return _page(survey.title, body, '<script type="module" src="page.js"></script>')


def results(survey: LocalSurvey, questions: tuple[QuestionEstimates, ...]) -> str:
    """Return the page with estimates and intervals."""
    texts = {question.name: question.text for question in survey.questions}
    parts = "".join(_table(question, texts) for question in questions)
    waiting = "" if survey.batches is None else f" They change when a batch of {survey.batches.batch:,} is full."
    note = f"<p>Estimates from randomized reports; a rare answer can come out below zero.{waiting}</p>"
    return _page(survey.title, note + (parts or "<p>No report was counted yet.</p>"))


def _table(question: QuestionEstimates, texts: Mapping[str, str]) -> str:
    rows = "".join(
        f"<tr><td>{escape(row.value)}</td><td>{row.estimate:.4f}</td><td>{row.low:.4f} to {row.high:.4f}</td></tr>"
        for row in question.estimates
    )
    head = "<tr><th>answer</th><th>estimate</th><th>95 % interval</th></tr>"
    about = f"{question.people:,} reports; each interval by itself, about {escape(question.about)}."
    return f"<h2>{escape(texts[question.question])}</h2><table>{head}{rows}</table><p>{about}</p>"


def _page(title: str, body: str, script: str = "") -> str:
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style>{script}<main><h1>{escape(title)}</h1>{body}</main></html>"
    )
