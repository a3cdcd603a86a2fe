"""Pages of a collector: the form of a survey, and what its reports say so far; nothing comes from elsewhere."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING

from incrowd.core.words import counted
from incrowd.drawing.catalog import sentences

if TYPE_CHECKING:
    from incrowd.methods.local.estimates import QuestionEstimates
    from incrowd.methods.local.survey.definition import LocalSurvey

_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --soft: #f3f5f7; --line: #b8bfc6; --quiet: #4b5560;
  --strong: #0b5cad; --on-strong: #fff; --wrong: #a8071a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #16181b; --soft: #202429; --line: #5a636d;
  --quiet: #b4bcc4; --strong: #8ab4f8; --on-strong: #10131a; --wrong: #ff9c9c; } }
body { font: 17px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 1rem auto 3rem; padding: 0 1rem;
  color: var(--ink); background: var(--paper); }
h1 { line-height: 1.2; margin: 0.5rem 0; }
h2 { font-size: 1.2rem; margin: 1.5rem 0 0.3rem; }
a { color: var(--strong); }
.bar { display: flex; justify-content: flex-end; gap: 0.5rem; align-items: center; flex-wrap: wrap; }
input, select, button, textarea { font: inherit; padding: 0.4rem 0.6rem; max-width: 100%; box-sizing: border-box;
  color: inherit; background: var(--paper); border: 1px solid var(--line); border-radius: 0.4rem; }
button { cursor: pointer; }
button.main { background: var(--strong); color: var(--on-strong); border-color: var(--strong); font-weight: 600; }
:focus-visible { outline: 3px solid var(--strong); outline-offset: 2px; }
[aria-invalid=true] { border-color: var(--wrong); outline: 1px solid var(--wrong); }
fieldset { border: 0; margin: 0; padding: 0; min-width: 0; }
fieldset.card, .panel { background: var(--soft); border: 1px solid var(--line); border-radius: 0.6rem;
  padding: 1rem 1.1rem; margin: 0 0 1.2rem; }
fieldset.card { position: relative; padding-top: 1.2rem; }
.card legend { float: left; width: 100%; font-size: 1.15rem; font-weight: 650; padding: 0; }
.card legend + * { clear: both; }
.card p { margin: 0.3rem 0; }
.card p:empty { display: none; }
.number, .hint, .skipped, figcaption, .quiet { color: var(--quiet); font-size: 0.93rem; overflow-wrap: anywhere; }
.error { color: var(--wrong); font-weight: 600; }
.row { display: flex; gap: 0.6rem; align-items: baseline; padding: 0.25rem 0; }
.row label { flex: 1; }
.explained { border-left: 4px solid var(--strong); padding-left: 0.7rem; margin-top: 0.8rem; }
.pictures { display: flex; gap: 1.2rem; flex-wrap: wrap; }
figure { margin: 0.6rem 0 0; width: 13rem; max-width: 100%; }
circle.full { fill: var(--strong); }
circle.open { fill: none; stroke: var(--line); stroke-width: 1.5; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1rem; margin: 0.8rem 0; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
#introduction { white-space: pre-line; }
#token, #permanent-code { width: 100%; font-family: ui-monospace, monospace; }
pre, code, li { font: 14px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; white-space: pre-wrap; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: 0.2rem 1rem 0.2rem 0; }
[role=status] { font-weight: 700; min-height: 1.5em; }
[hidden] { display: none !important; }
@media (max-width: 30rem) { dl { grid-template-columns: 1fr; } dd { margin-bottom: 0.4rem; } }
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
    """Return the page on which a survey is answered; its script writes the words in the respondent's language."""
    hashes = "".join(f"<li>{escape(name)}: {escape(mark)}</li>" for name, mark in survey.scripts.items())
    purpose = "" if survey.purpose is None else f"<dt>Purpose</dt><dd>{escape(survey.purpose)}</dd>"
    without = "".join(f'<p lang="{code}">{escape(part["no-script"])}</p>' for code, part in sentences("survey").items())
    body = f"""<noscript>{without}</noscript>
<div id="page" hidden>
<p id="introduction"></p><dl id="about">{purpose}</dl>
<section class="panel"><h2 data-say="how-title"></h2>
<p><span data-say="how"></span> <span id="several"></span></p>
<p><span id="promise"></span> <span data-say="taking-part"></span> <span data-say="stored-here"></span></p>
<p id="rounds"></p><p id="shuffled"></p><p id="round"></p></section>
<form id="form" autocomplete="off" novalidate><fieldset id="entries">
<p id="token-box"><label for="token" data-say="token"></label><br>
<input id="token" autocomplete="off" spellcheck="false" aria-describedby="token-hint"><br>
<span class="quiet" id="token-hint" data-say="token-hint"></span></p>
<p id="token-read" class="quiet" data-say="token-read" hidden></p>
<div id="questions"></div><p><button class="main" data-say="randomize"></button></p></fieldset></form>
<section id="result" class="panel" hidden>
<h2 id="result-title" tabindex="-1" data-say="result-title"></h2><div id="meaning"></div>
<p><button id="send" class="main" type="button" data-say="send"></button>
<button id="again" type="button" data-say="again" aria-describedby="again-note"></button></p>
<p class="quiet" id="again-note" data-say="again-note"></p>
<details><summary data-say="randomness"></summary><p data-say="randomness-note"></p><ol id="coins"></ol></details>
<details><summary data-say="exact"></summary><pre id="sent"></pre></details>
</section>
<details id="permanent" class="panel" hidden><summary data-say="permanent-title"></summary>
<p data-say="permanent-note"></p>
<p><textarea id="permanent-code" rows="4" spellcheck="false" autocomplete="off" aria-label="code"></textarea></p>
<p><button id="restore" type="button" data-say="permanent-restore"></button></p></details></div>
<p id="message" role="status" tabindex="-1"></p>
<details><summary data-say="scripts">SHA-256</summary><ul>{hashes}</ul>
<p><a href="certificate.json">certificate.json</a></p></details>
<p><a href="estimates" data-say="results">Results so far</a></p>"""
    return _page(survey.title, body, '<script type="module" src="page.js"></script>', _LANGUAGES)


_LANGUAGES = """<p class="bar" id="languages" hidden>
<span class="quiet" id="unreviewed" data-say="unreviewed" hidden></span>
<label for="language" data-say="language">Language</label> <select id="language" autocomplete="off"></select></p>"""


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
    about = f"{counted(question.people, 'report')}; each interval by itself, about {escape(question.about)}."
    title = texts[question.question] + question.title.removeprefix(question.question)
    return f"<h2>{escape(title)}</h2><table>{head}{rows}</table><p>{about}</p>"


def _page(title: str, body: str, script: str = "", before: str = "") -> str:
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style>{script}"
        f'<main>{before}<h1 id="title">{escape(title)}</h1>{body}</main></html>'
    )
