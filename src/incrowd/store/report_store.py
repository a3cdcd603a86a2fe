"""Reports of a survey, and the tokens that were used for them, in the transaction of a chain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from incrowd.store.database import Transaction


@dataclass(frozen=True)
class ReportStore:
    """Two tables beside a chain: used tokens, by their text and so without order or time, and batches of reports."""

    connection: Transaction
    name: str

    @property
    def tokens(self) -> str:
        """The table of used tokens."""
        return f"{self.name}_tokens"

    @property
    def contents(self) -> str:
        """The table of reports, by the entry that names their digest."""
        return f"{self.name}_contents"

    def create(self, by_key: str) -> None:
        """Make the tables unless they are there; `by_key` is how a database spells a table kept by its key."""
        self.connection.execute(
            f"CREATE TABLE IF NOT EXISTS {self.tokens} (token VARCHAR(64) NOT NULL, mark VARCHAR(64), "
            f"PRIMARY KEY (token)) {by_key}"
        )
        self.connection.execute(
            f"CREATE TABLE IF NOT EXISTS {self.contents} (sequence BIGINT NOT NULL, content TEXT NOT NULL, "
            "PRIMARY KEY (sequence))"
        )

    def mark(self, token: str) -> str | None:
        """Return the mark of what a token was used for, empty if none was kept; None if it was not used."""
        rows = self.connection.execute(
            f"SELECT coalesce(mark, '') FROM {self.tokens} WHERE token = :token",  # noqa: S608 - our own table
            {"token": token},
        )
        return str(rows[0][0]) if rows else None

    def use(self, token: str, mark: str | None) -> None:
        """Write down that a token was used, with a mark of its report or alone."""
        self.connection.execute(
            f"INSERT INTO {self.tokens} (token, mark) VALUES (:token, :mark)",  # noqa: S608 - our own table
            {"token": token, "mark": mark},
        )

    def keep(self, sequence: int, content: str) -> None:
        """Keep the reports of an entry."""
        self.connection.execute(
            f"INSERT INTO {self.contents} (sequence, content) VALUES (:sequence, :content)",  # noqa: S608 - our own table
            {"sequence": sequence, "content": content},
        )

    def batches(self, after: int = 0) -> Iterator[tuple[int, str]]:
        """Yield the entries that follow the one numbered `after` and hold reports, with them."""
        table = self.contents
        statement = f"SELECT sequence, content FROM {table} WHERE sequence > :after ORDER BY sequence"  # noqa: S608
        for sequence, content in self.connection.execute(statement, {"after": after}):
            yield int(sequence), str(content)
