"""Groups: classes of rows that agree on some columns, and how the values of another column fall into them."""

from __future__ import annotations

from incrowd.criteria.groups import Each, Groups

__all__ = ["Each", "Groups"]
