"""RO-Crate: a research object, a folder of files with their description (version 1.1)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from incrowd.core.certificate import File
from incrowd.verifier.files import CERTIFICATE
from incrowd.workflows.export.formats import Exported, PublisherInfo, ReleaseDescription, describe, media_type

FILE = "ro-crate-metadata.json"
_CURATOR = "#curator"


def exported(source: Path, publisher: PublisherInfo) -> Exported:
    """Return the description of a release, and the files of its folder."""
    release = describe(source, publisher)
    files = tuple(release.folder / file.name for file in release.files)
    return replace(release.exported(document(release)), name=FILE, files=files)


def document(release: ReleaseDescription) -> dict[str, Any]:
    """Return the description of the folder that holds it and the files of the release."""
    return {
        "@context": "https://w3id.org/ro/crate/1.1/context",
        "@graph": [_itself(), _root(release), *_people(release), *map(_file, release.files), _made(release)],
    }


def _itself() -> dict[str, Any]:
    return {
        "@id": FILE,
        "@type": "CreativeWork",
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        "about": {"@id": "./"},
    }


def _root(release: ReleaseDescription) -> dict[str, Any]:
    publisher = release.publisher
    named = {
        "license": publisher.license,
        "url": publisher.url,
        "publisher": None if publisher.curator is None else {"@id": _CURATOR},
    }
    return {
        "@id": "./",
        "@type": "Dataset",
        "name": release.name,
        "description": release.summary,
        "identifier": release.identifier,
        "datePublished": release.day,
        "usageInfo": release.open,
        **{key: value for key, value in named.items() if value is not None},
        "hasPart": [{"@id": file.name} for file in release.files],
        "mentions": {"@id": "#release"},
    }


def _people(release: ReleaseDescription) -> list[dict[str, Any]]:
    curator = release.publisher.curator
    return [] if curator is None else [{"@id": _CURATOR, "@type": "Organization", "name": curator}]


def _file(file: File) -> dict[str, Any]:
    about = {"name": "certificate: what was done, what it guarantees, what it cost"} if file.name == CERTIFICATE else {}
    return {
        "@id": file.name,
        "@type": "File",
        "contentSize": str(file.bytes),
        "encodingFormat": media_type(file.name),
        "sha256": file.sha256,
        **about,
    }


def _made(release: ReleaseDescription) -> dict[str, Any]:
    """Return the making of the files: by which tool, when, and how."""
    certificate = release.certificate
    return {
        "@id": "#release",
        "@type": "CreateAction",
        "name": f"release by the method “{certificate.method.name}”",
        "description": release.processing,
        "endTime": certificate.created,
        "instrument": {"@id": "#tool", "@type": "SoftwareApplication", "name": certificate.tool},
        "result": [{"@id": file.name} for file in release.files],
    }
