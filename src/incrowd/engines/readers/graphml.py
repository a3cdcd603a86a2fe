"""GraphML: the nodes and the edges of one file, as two tables of texts."""

from __future__ import annotations

from pathlib import Path
from xml.parsers import expat

import pyarrow as pa

from incrowd.errors import SourceUnreadable

ENDING = ".graphml"
NODE_ID, SOURCE, TARGET = "id", "source", "target"


def read_graphml(path: Path) -> tuple[pa.Table, pa.Table]:
    """Return nodes (`id` and attributes) and edges (`source`, `target` and attributes)."""
    handler = _Handler()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.StartElementHandler, parser.EndElementHandler = handler.start, handler.end
    parser.CharacterDataHandler = handler.text.append
    parser.EntityDeclHandler = _refuse_entities
    try:
        with path.open("rb") as file:
            parser.ParseFile(file)
    except OSError as error:
        raise SourceUnreadable(f"{path.name} cannot be read: {error.strerror or 'no reason given'}.") from None
    except (expat.ExpatError, KeyError):
        raise SourceUnreadable(
            f"{path.name} is not GraphML: its XML is broken, or a node or an edge lacks an id."
        ) from None
    return _table(handler.nodes, (NODE_ID,)), _table(handler.edges, (SOURCE, TARGET))


class _Handler:
    """The nodes and edges read so far; an edge without a direction of its own has that of the graph."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.nodes: list[dict[str, str]] = []
        self.edges: list[dict[str, str]] = []
        self.text: list[str] = []
        self.key: str | None = None
        self.current: dict[str, str] | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        kind = name.rpartition("}")[2]
        self.text.clear()
        if kind == "key":
            self.names[attributes["id"]] = attributes.get("attr.name", attributes["id"])
        elif kind == "node":
            self.current = {NODE_ID: attributes["id"]}
            self.nodes.append(self.current)
        elif kind == "edge":
            self.current = {SOURCE: attributes["source"], TARGET: attributes["target"]}
            self.edges.append(self.current)
        elif kind == "data":
            self.key = attributes["key"]

    def end(self, name: str) -> None:
        kind = name.rpartition("}")[2]
        if kind == "data" and self.key is not None and self.current is not None:
            self.current.setdefault(self.names.get(self.key, self.key), "".join(self.text).strip())
        elif kind in ("node", "edge"):
            self.current = None


def _refuse_entities(*_declared: object) -> None:
    raise SourceUnreadable("this GraphML declares entities, which can make a file endless: remove them.")


def _table(rows: list[dict[str, str]], first: tuple[str, ...]) -> pa.Table:
    names = dict.fromkeys([*first, *(name for row in rows for name in row)])
    return pa.table({name: pa.array([row.get(name) for row in rows], pa.string()) for name in names})
