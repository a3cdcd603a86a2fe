"""Markup: HTML that is escaped by construction; only what `tag` made goes in as it is."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

_POWER = re.compile(r"(?<=[e0])\^(ε|\d+)")
_VOID = frozenset({"meta", "br", "hr"})


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def text(content: object) -> Html:
    """Return anything as text, its exponents raised; markup stays what it is.

    >>> text("<b>"), text(Html("<b>")), text("e^ε")
    ('&lt;b&gt;', '<b>', 'e<sup>ε</sup>')
    """
    if isinstance(content, Html):
        return content
    return Html(_POWER.sub(r"<sup>\1</sup>", html.escape(str(content))).replace(" %", "\u00a0%"))


def tag(name: str, *content: object, **attributes: object) -> Html:
    """Return an element; a trailing underscore of an attribute falls away, others become hyphens, None is left out.

    >>> tag("p", "a < b", class_="note", aria_label='"x"')
    '<p class="note" aria-label="&quot;x&quot;">a &lt; b</p>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{joined(content)}</{name}>")


def joined(parts: Iterable[object], between: str = "") -> Html:
    """Return parts one after the other.

    >>> joined(["<", tag("b", "x")])
    '&lt;<b>x</b>'
    """
    return Html(between.join(text(part) for part in parts))


def bullets(items: Iterable[object], **attributes: object) -> Html:
    """Return a list."""
    return tag("ul", *(tag("li", item) for item in items), **attributes)


def table(caption: str, head: Sequence[object], rows: Iterable[Sequence[object]], **attributes: object) -> Html:
    """Return a table whose first column names the rows, in a frame that scrolls on small screens.

    >>> "<caption>amounts</caption>" in table("amounts", ["", "value"], [["epsilon", 1]])
    True
    """
    header = tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in head)))
    body = tag("tbody", *(tag("tr", tag("th", row[0], scope="row"), *(tag("td", c) for c in row[1:])) for row in rows))
    whole = tag("table", tag("caption", caption), header, body, **attributes)
    return tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)


def figure(picture: Html, caption: object, numbers: Html | None = None) -> Html:
    """Return a picture with what it shows in words and, folded below it, in numbers."""
    folded = "" if numbers is None else tag("details", tag("summary", "The numbers in this picture"), numbers)
    return tag("figure", picture, tag("figcaption", caption), folded)


def section(name: str, title: object, *content: object) -> Html:
    """Return a section with a heading that can be linked to."""
    return tag("section", tag("h2", title, id=name), *content, aria_labelledby=name)
