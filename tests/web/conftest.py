from __future__ import annotations

from functools import partial

import pytest

from incrowd.web.concurrency import RateLimiter


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers for whose limits no time passes: on a busy machine a few requests may take a minute."""
    monkeypatch.setattr("incrowd.web.app.RateLimiter", partial(RateLimiter, clock=lambda: 0.0))
