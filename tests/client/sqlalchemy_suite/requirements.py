"""What a dialect that only reads requires of SQLAlchemy's own tests."""

from __future__ import annotations

from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

_rules: Any = exclusions
_OPEN, _CLOSED = _rules.open(), _rules.closed()


class ReadOnly(SuiteRequirements):
    """Nothing is made, changed or dropped."""

    create_table = drop_table = foreign_keys = isolation_level = _CLOSED
    standalone_binds = autocommit = _OPEN
