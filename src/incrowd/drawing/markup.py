"""Markup: HTML and SVG that are escaped by construction, and a description of what was published."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

_NARROW = 3  # so many columns fit on a small screen
_POWER = re.compile(r"(?<=[e0])\^(ε|\d+)")


def text(content: object) -> Markup:
    """Return anything as text with raised exponents; markup is unchanged.

    >>> print(text("<b>"), text(Markup("<b>")), text("e^ε"))
    &lt;b&gt; <b> e<sup>ε</sup>
    """
    if isinstance(content, Markup):
        return content
    escaped = str(escape(str(content))).replace(" %", "\u00a0%")
    return Markup(_POWER.sub(r"<sup>\1</sup>", escaped))  # noqa: S704 - escaped


def tag(name: str, *content: object, **attributes: object) -> Markup:
    """Return an element; a trailing underscore of an attribute is removed, others become hyphens, None is left out.

    >>> print(tag("p", "a < b", class_="note", aria_label='"x"'))
    <p class="note" aria-label="&#34;x&#34;">a &lt; b</p>
    """
    rendered = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{rendered}>{joined(content)}</{name}>")  # noqa: S704 - escaped part by part


def joined(parts: Iterable[object]) -> Markup:
    """Return parts in sequence."""
    return Markup().join(map(text, parts))


def table(caption: str, head: Sequence[object], rows: Iterable[Sequence[object]]) -> Markup:
    """Return a table whose first column names the rows; one of many columns is a list of them on small screens.

    >>> "<caption>amounts</caption>" in table("amounts", ["", "value"], [["epsilon", 1]])
    True
    """
    names = [str(cell) if len(head) > _NARROW else None for cell in head[1:]]
    lines = (
        tag(
            "tr",
            tag("th", row[0], scope="row"),
            *(tag("td", cell, data_name=name) for cell, name in zip(row[1:], names, strict=True)),
        )
        for row in rows
    )
    return framed(caption, head, joined(lines), class_="stacked" if len(head) > _NARROW else None)


def framed(caption: str, head: Sequence[object], rows: Markup, **attributes: object) -> Markup:
    """Return rows as a table, in a frame that scrolls on small screens."""
    header = tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in head)))
    whole = tag("table", tag("caption", caption), header, tag("tbody", rows), **attributes)
    return tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)


def figure(picture: Markup, caption: str, numbers: Markup) -> Markup:
    """Return a picture with a caption and, folded below, its numbers."""
    folded = tag("details", tag("summary", "The numbers in this picture"), numbers)
    return tag("figure", picture, tag("figcaption", caption), folded)


@dataclass(frozen=True)
class Description:
    """What was published, briefly and in full; and what a person who searches for one row would see."""

    short: str
    full: str
    match: str = "rows equal to the one they look for"


EMPTY = Description("No row", "Every row was suppressed: the published table is empty.")
