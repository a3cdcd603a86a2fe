"""Names of days and months come from a fast way into Babel's files, and from its public words if that fails."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from babel import Locale, localedata

from incrowd.workflows.profile import vocabularies


@pytest.mark.parametrize("language", ["en", "de", "pl"])
def test_the_words_of_a_file_are_those_of_its_public_interface(language: str) -> None:
    words = vocabularies._own_words(language)
    assert words is not None
    for what in ("days", "months"):
        public: Any = getattr(Locale(language), what)
        for width in ("wide", "abbreviated"):
            assert dict(words[what]["format"][width]) == dict(public["format"][width])


_DAYS = {"format": {"wide": {0: "Mo"}, "abbreviated": {0: "M"}}}


@pytest.mark.parametrize(
    "content",
    [
        b"another format",
        pickle.dumps(["no", "mapping"]),
        pickle.dumps({"days": _DAYS, "months": _DAYS}),
        pickle.dumps({"calendar": {"days": {}, "months": {}}}),
        pickle.dumps({"days": {"format": {"wide": "Mo"}}, "months": None}),
        None,
    ],
)
def test_another_form_of_the_file_leads_to_the_public_words(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = vocabularies._calendar_words.__wrapped__("pl")
    if content is not None:
        (tmp_path / "pl.dat").write_bytes(content)
    monkeypatch.setattr(localedata, "resolve_locale_filename", lambda name: str(tmp_path / f"{name}.dat"))
    assert vocabularies._own_words("pl") is None
    monkeypatch.undo()
    monkeypatch.setattr(vocabularies, "_own_words", lambda language: None)
    assert vocabularies._calendar_words.__wrapped__("pl") == usual
    assert usual[0][0] == "poniedziałek"
