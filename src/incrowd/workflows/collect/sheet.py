"""Sheet: a printable page of personal links, one a card, with a QR code where the package for it is installed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from importlib.util import find_spec
from io import BytesIO
from urllib.parse import urlsplit

from incrowd.drawing.catalog import BASE, sentences
from incrowd.errors import InvalidParameter
from incrowd.methods.local.survey.definition import LocalSurvey

_STYLE = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 1rem; color: #000; background: #fff; }
article { display: flex; gap: 1rem; border: 1px dashed #777; padding: 0.8rem; margin: 0 0 0.6rem; break-inside: avoid; }
article svg { width: 8.5rem; height: 8.5rem; flex: none; }
code { overflow-wrap: anywhere; font-size: 12px; }
h2 { font-size: 16px; margin: 0 0 0.3rem; }
p { margin: 0 0 0.3rem; }
"""


def link(address: str, token: str) -> str:
    """Return a personal link: the token stands behind `#`, which browsers do not send.

    >>> link("https://survey.example/", "3f9a")
    'https://survey.example/#token=3f9a'
    """
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidParameter("--address is where respondents find the page, such as https://survey.example.")
    return f"{address.rstrip('/')}/#token={token}"


def sheet(survey: LocalSurvey, address: str, tokens: Iterable[str], people: Mapping[str, str] | None = None) -> str:
    """Return a page to print: the survey's title, a note in each of its languages, and a link for each token.

    `people` names the person of each token, where they were invited by name: such a sheet stays with the data holder.
    """
    texts = sentences("survey")
    used = [language for language in texts if language in survey.texts] or [BASE]
    note = "".join(f'<p lang="{language}">{escape(texts[language]["sheet"])}</p>' for language in used)
    cards = (_card(survey.title, note, link(address, token), (people or {}).get(token)) for token in tokens)
    return (
        f'<!doctype html><html lang="{used[0]}"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(survey.title)}</title><style>{_STYLE}</style><main>{''.join(cards)}</main></html>\n"
    )


def _card(title: str, note: str, address: str, person: str | None) -> str:
    name = "" if person is None else f"<p>{escape(person)}</p>"
    text = f"<h2>{escape(title)}</h2>{name}{note}<p><code>{escape(address)}</code></p>"
    return f"<article>{_code(address)}<div>{text}</div></article>"


def _code(address: str) -> str:
    """Return the QR code of an address as a picture, or nothing where the package is missing."""
    if find_spec("segno") is None:
        return ""
    import segno

    picture = BytesIO()
    segno.make(address, error="m").save(picture, kind="svg", xmldecl=False, svgns=True, omitsize=True, border=2)
    return picture.getvalue().decode()
