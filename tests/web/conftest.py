from __future__ import annotations

from functools import partial

import pytest

from incrowd.web.services import Limiter


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers for whose limits no time passes: on a busy machine a few requests may take a minute."""
    monkeypatch.setattr("incrowd.web.app.Limiter", partial(Limiter, clock=lambda: 0.0))
