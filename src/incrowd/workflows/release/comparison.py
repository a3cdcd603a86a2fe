"""Comparison: one policy from several that say how to synthesize the same table, whose runs are charged together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.document import Document
from incrowd.workflows.policy.policy import Policy, document_of, load_policy, policy_of

_OWN = frozenset(("method", "workload", "rounds", "cells", "target_column", "detail"))
_METHODS = ("marginals", "tree")
COMPARISON = "comparison"


def comparison_policy(files: Sequence[Path]) -> Policy:
    """Return the policy that compares what several files say under `release:`, or the one file's own comparison.

    All that is not a way to synthesize, such as columns, levels, ε and δ, must be the same in all of them: the ε is
    that of all runs together.
    """
    if len(files) == 1:
        policy = load_policy(files[0])
        if policy.method.name != COMPARISON:
            raise InvalidParameter(
                f"{files[0]} says one way to synthesize, and there is nothing to compare: name a second policy by "
                f"--policy, or write method: {COMPARISON} with candidates: under release:."
            )
        return policy
    names = [file.stem for file in files]
    if len(set(names)) < len(names):
        raise InvalidParameter("two policies have one name: ways are named by their files, so rename one.")
    documents = [document_of(file) for file in files]
    ways = [_release(document, file) for document, file in zip(documents, files, strict=True)]
    shared = [{key: value for key, value in way.items() if key not in _OWN} for way in ways]
    rest = [{key: value for key, value in document.content.items() if key != "release"} for document in documents]
    for own, other, file in zip(shared, rest, files, strict=True):
        parts = [key for key in {*own, *shared[0]} if own.get(key) != shared[0].get(key)]
        parts += [key for key in {*other, *rest[0]} if other.get(key) != rest[0].get(key)]
        if parts:
            raise InvalidParameter(
                f"{file} and {files[0]} differ in {min(parts)!r}. Policies that are compared differ only in "
                f"{', '.join(sorted(_OWN))} under release:, so that their errors are of the same tables."
            )
    candidates = {
        name: {key: value for key, value in way.items() if key in _OWN} for name, way in zip(names, ways, strict=True)
    }
    release = {**shared[0], "method": COMPARISON, "candidates": candidates}
    document = Document({**documents[0].content, "release": release}, {})
    return policy_of(document, files[0].resolve().parent, " and ".join(map(str, files)))


def _release(document: Document, file: Path) -> Mapping[str, Any]:
    release = document.content.get("release") if isinstance(document.content, dict) else None
    if not isinstance(release, dict) or release.get("method") not in _METHODS:
        raise InvalidParameter(f"{file}: policies that are compared have method: {' or '.join(_METHODS)} each.")
    return release
