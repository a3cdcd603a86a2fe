"""Place: where a policy keeps decisions and the key of their pseudonyms, each apart from the data."""

from __future__ import annotations

from pathlib import Path

from incrowd.core.schema import Column
from incrowd.core.subjects import SubjectKey
from incrowd.errors import InvalidParameter, Refused
from incrowd.governance.consent.registry import Registry
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.policy.sections import ConsentSection

_SQLITE = "sqlite:///"
_SECRETS = ("the key", "the registry")


def open_registry(policy: Policy, data: object = None) -> Registry:
    """Open the registry that a policy names, which must lie apart from the data and from the key."""
    require_apart(policy, data)
    return Registry.open(_address(policy))


def make_registry(policy: Policy) -> Registry:
    """Make the registry that a policy names, unless it is there, and open it."""
    require_apart(policy, None)
    return Registry.create(_address(policy))


def subject_key(policy: Policy) -> SubjectKey:
    """Read the key of pseudonyms."""
    path = policy.folder / _section(policy).key
    try:
        return SubjectKey(path.read_bytes())
    except OSError as error:
        reason = error.strerror or "no reason given"
        raise InvalidParameter(
            f"the key of the consent registry cannot be read: {reason}. Make one with 'openssl rand -out FILE 32', and "
            "name it under consent: key:."
        ) from None


def person_column(policy: Policy) -> Column:
    """Return the column by which people are known: of a graph, by which nodes are."""
    return policy.schema[policy.graph.id if policy.graph is not None else policy.schema.unit.column or ""]


def require_apart(policy: Policy, data: object) -> None:
    """Refuse a registry beside the data, and a key beside either: whoever copies one folder must not know who left."""
    folders = {"the key": (policy.folder / _section(policy).key).resolve().parent}
    address = _address(policy)
    if address.startswith(_SQLITE):
        folders["the registry"] = Path(address.removeprefix(_SQLITE)).resolve().parent
    for name, source in _sources(policy, data):
        if isinstance(source, str | Path) and "://" not in str(source):
            folders[name] = Path(source).resolve().parent
    names = list(folders)
    for place, one in enumerate(names):
        for other in names[place + 1 :]:
            if folders[one] == folders[other] and one in _SECRETS:
                raise Refused(
                    f"{one} and {other} of this policy lie in one folder, and whoever copies it learns who withdrew. "
                    "Keep data, consent registry and key in three places."
                )


def _sources(policy: Policy, data: object) -> list[tuple[str, object]]:
    if policy.graph is not None:
        return [("the nodes", policy.graph.nodes[0]), ("the edges", policy.graph.edges[0])]
    return [("the data", policy.source if data is None else data)]


def _section(policy: Policy) -> ConsentSection:
    if policy.section.consent is None:
        raise InvalidParameter("this policy names no purpose: write purpose: and consent: into it.")
    return policy.section.consent


def _address(policy: Policy) -> str:
    told = _section(policy).registry
    if "://" not in told:
        return f"{_SQLITE}{(policy.folder / told).resolve().as_posix()}"
    path = told.removeprefix(_SQLITE)
    if told.startswith(_SQLITE) and not Path(path).is_absolute():
        return f"{_SQLITE}{(policy.folder / path).resolve().as_posix()}"
    return told
