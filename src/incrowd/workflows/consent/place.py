"""Place: where a policy keeps decisions and the key of their pseudonyms, each apart from the data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from incrowd.core.schema import Column
from incrowd.core.subjects import SubjectKey
from incrowd.errors import InvalidParameter, Refused
from incrowd.governance.consent.registry import Registry
from incrowd.workflows.policy.linked_tables import places_of
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.policy.sections import ConsentSection

_SQLITE = "sqlite:///"
_SECRETS = ("the key", "the registry")


@dataclass(frozen=True)
class ConsentPlace:
    """Where registry and key are, taken from a folder; and the data, each by a name, from which both must lie apart."""

    folder: Path
    section: ConsentSection
    data: tuple[tuple[str, object], ...] = ()

    @classmethod
    def of(cls, policy: Policy, data: object = None) -> ConsentPlace:
        """Return the place that a policy names, for its own source or other data."""
        if policy.section.consent is None:
            raise InvalidParameter("this policy does not check consent: add purpose: and consent:.")
        sources: tuple[tuple[str, object], ...] = (("the data", policy.source if data is None else data),)
        if policy.linked:
            sources = tuple((f"the table {name}", place) for name, (place, _) in places_of(policy, data).items())
        if policy.graph is not None:
            sources = (("the nodes", policy.graph.nodes[0]), ("the edges", policy.graph.edges[0]))
        return cls(policy.folder, policy.section.consent, sources)

    @property
    def address(self) -> str:
        """Where the registry is; a file is looked for from the folder."""
        registry = self.section.registry
        if "://" not in registry:
            return f"{_SQLITE}{(self.folder / registry).resolve().as_posix()}"
        path = registry.removeprefix(_SQLITE)
        if registry.startswith(_SQLITE) and not Path(path).is_absolute():
            return f"{_SQLITE}{(self.folder / path).resolve().as_posix()}"
        return registry

    def open(self) -> Registry:
        """Open the registry, which must lie apart from the data and from the key."""
        self.require_apart()
        return Registry.open(self.address)

    def key(self) -> SubjectKey:
        """Read the key of pseudonyms."""
        try:
            return SubjectKey((self.folder / self.section.key).read_bytes())
        except OSError as error:
            reason = error.strerror or "no reason given"
            raise InvalidParameter(
                f"the key of the consent registry cannot be read: {reason}. Make one with 'openssl rand -out FILE 32' "
                "and name it at consent: key:."
            ) from None

    def require_apart(self) -> None:
        """Refuse a registry beside the data, and a key beside either: who copies one folder must not know who left."""
        folders = {"the key": (self.folder / self.section.key).resolve().parent}
        if self.address.startswith(_SQLITE):
            folders["the registry"] = Path(self.address.removeprefix(_SQLITE)).resolve().parent
        for name, source in self.data:
            if isinstance(source, str | Path) and "://" not in str(source):
                folders[name] = Path(source).resolve().parent
        names = list(folders)
        for place, one in enumerate(names):
            for other in names[place + 1 :]:
                if folders[one] == folders[other] and one in _SECRETS:
                    raise Refused(
                        f"{one} and {other} of this policy are in the same folder: a copy of it would show who "
                        "withdrew. Keep data, consent registry and key in three folders."
                    )


def open_registry(policy: Policy, data: object = None) -> Registry:
    """Open the registry that a policy names, which must lie apart from the data and from the key."""
    return ConsentPlace.of(policy, data).open()


def make_registry(policy: Policy) -> Registry:
    """Make the registry that a policy names, unless it is there, and open it."""
    place = ConsentPlace.of(policy)
    place.require_apart()
    return Registry.create(place.address)


def subject_key(policy: Policy) -> SubjectKey:
    """Read the key of pseudonyms."""
    return ConsentPlace.of(policy).key()


def person_column(policy: Policy) -> Column:
    """Return the column by which people are known: of a graph, by which nodes are."""
    return policy.schema[policy.graph.id if policy.graph is not None else policy.schema.unit.column or ""]
