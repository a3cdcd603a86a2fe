"""Model card: a learned model for a registry of models, with the fields of Hugging Face and the guarantee in words.

All of it comes from the certificate and the model's public file; what only the publisher knows is left for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from incrowd.core.claims.claim import Status
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.shared.models import LearnedModel, Use
from incrowd.workflows.export.formats import Exported, PublisherInfo, ReleaseDescription, describe
from incrowd.workflows.registry import LEARNING

_TASKS = {Use.CLASSES: "tabular-classification", Use.NUMBERS: "tabular-regression"}
_STATES = {
    Status.PROVED: "follows from how the program works",
    Status.CHECKED: "tested on this release",
    Status.ASSUMED: "assumed: no software can check it",
    Status.NOT_MET: "known to be false: the claim does not cover this",
}


def exported(source: Path, publisher: PublisherInfo) -> Exported:
    """Return the card of a released model as a README in Markdown."""
    release = describe(source, publisher)
    if release.certificate.method.name not in LEARNING:
        raise InvalidParameter(
            f"a model card describes a learned model, and this is a release by {release.certificate.method.name!r}: "
            "choose croissant for a table."
        )
    return release.exported(card_of(release, LearnedModel.load(release.folder)))


def card_of(release: ReleaseDescription, model: LearnedModel) -> str:
    """Return the text: a head of metadata, then sections."""
    writer, head = YAML(), StringIO()
    writer.width = 4096
    writer.dump(metadata(release, model), head)
    sections = "\n\n".join(f"## {title}\n\n{text}" for title, text in _sections(release, model))
    return f"---\n{head.getvalue()}---\n\n# {release.name}\n\n{release.summary}\n\n{sections}\n"


def metadata(release: ReleaseDescription, model: LearnedModel) -> dict[str, Any]:
    """Return the fields that registries of models read."""
    task = _TASKS.get(model.use)
    tags = ["differential-privacy", "tabular", release.certificate.method.name]
    return {
        "library_name": "incrowd",
        **({} if task is None else {"pipeline_tag": task}),
        "tags": tags,
        **(
            {} if release.publisher.license is None else {"license": "other", "license_link": release.publisher.license}
        ),
    }


def _sections(release: ReleaseDescription, model: LearnedModel) -> Iterator[tuple[str, str]]:
    stated = release.certificate
    yield "What it reads and gives", _listed(f"{name}: {value}" for name, value in model.facts)
    yield (
        "Privacy guarantee",
        f"Unit of privacy: {stated.guarantee.unit}. {release.odds.numbers}.\n\n"
        + _listed(f"**{claim.kind}**: {claim.sentence} ({claim.source})" for claim in stated.claims),
    )
    conditions = {condition.term.text: condition.status for claim in stated.claims for condition in claim.preconditions}
    yield "What the guarantee depends on", _listed(f"{text} ({_STATES[status]})" for text, status in conditions.items())
    yield "What it does not protect", release.open
    yield "How it was trained", _listed(step.sentence for step in stated.steps)
    yield (
        "How to use it",
        (
            "`incrowd predict FOLDER data.csv --out predictions.csv`. Predicting costs nothing; predictions about "
            "private rows are as private as these rows."
        ),
    )
    yield "How to verify it", f"`incrowd verify FOLDER` recomputes every claim. Certificate: `{stated.id}`."


def _listed(lines: Iterator[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
