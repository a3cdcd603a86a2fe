"""What is exported follows from what was published, in forms that the tools of others read."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import mlcroissant
import pytest
from rocrate.rocrate import ROCrate
from ruamel.yaml import YAML

from incrowd.cli.main import main
from incrowd.errors import InvalidParameter
from incrowd.workflows.export.ddi import NAMESPACE
from incrowd.workflows.export.formats import FORMATS, PublisherInfo, export, exported
from tests.released import Folder, release_into

FORMS = [name for name in FORMATS if name not in ("onnx", "model-card")]
WHO = PublisherInfo("City Hospital", "https://example.org/licence", "https://example.org/data")


@pytest.fixture(scope="module", params=["csv", "parquet"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return release_into(tmp_path_factory.mktemp("exported") / "release", request.param)


def text(made: Folder, form: str, holder: PublisherInfo = WHO) -> str:
    return exported(made.out, form, holder).content.decode()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the library that reads it
def test_croissant_is_read_by_its_own_library(made: Folder, tmp_path: Path) -> None:
    file = tmp_path / "croissant.json"
    export(made.out, "croissant", file, WHO)
    dataset = mlcroissant.Dataset(file)
    assert not dataset.metadata.ctx.issues.errors
    data = next(each["name"] for each in made.certificate["outputs"] if each["name"].startswith("data"))
    assert [each.name for each in dataset.metadata.distribution] == ["certificate.json", data, "report.html"]
    hashes = {each.name: each.sha256 for each in dataset.metadata.distribution}
    assert hashes == {name: hashlib.sha256((made.out / name).read_bytes()).hexdigest() for name in hashes}
    (rows,) = dataset.metadata.record_sets
    assert [field.name for field in rows.fields] == made.certificate["schema"]["released"]


def test_a_crate_is_read_by_its_own_library_and_holds_every_file(made: Folder, tmp_path: Path) -> None:
    export(made.out, "ro-crate", tmp_path / "crate", WHO)
    crate = ROCrate(tmp_path / "crate")
    names = {file.name for file in made.out.iterdir()}
    assert {entity.id for entity in crate.data_entities} == names
    assert {file.name for file in (tmp_path / "crate").iterdir()} == names | {"ro-crate-metadata.json"}
    assert all((tmp_path / "crate" / name).read_bytes() == (made.out / name).read_bytes() for name in names)
    assert crate.root_dataset["license"] == WHO.license
    assert crate.root_dataset["publisher"]["name"] == WHO.curator


ORDER: dict[str, tuple[str, ...]] = {
    "codeBook": ("docDscr", "stdyDscr", "fileDscr", "dataDscr", "otherMat"),
    "stdyDscr": ("citation", "stdyInfo", "method", "dataAccs", "othrStdyMat", "notes"),
    "citation": ("titlStmt", "rspStmt", "prodStmt", "distStmt", "serStmt", "verStmt", "biblCit", "holdings", "notes"),
    "titlStmt": ("titl", "subTitl", "altTitl", "parTitl", "IDNo"),
    "rspStmt": ("AuthEnty", "othId"),
    "prodStmt": ("producer", "copyright", "prodDate", "prodPlac", "software", "fundAg", "grantNo"),
    "stdyInfo": ("subject", "abstract", "sumDscr", "notes"),
    "sumDscr": ("timePrd", "collDate", "nation", "geogCover", "geogUnit", "anlyUnit", "universe", "dataKind"),
    "method": ("dataColl", "notes", "anlyInfo"),
    "dataAccs": ("setAvail", "useStmt", "notes"),
    "useStmt": ("confDec", "specPerm", "restrctn", "contact", "citReq", "deposReq", "conditions", "disclaimer"),
    "fileDscr": ("fileTxt", "locMap", "notes"),
    "fileTxt": ("fileName", "fileCont", "fileStrc", "dimensns", "fileType", "format"),
    "dimensns": ("caseQnty", "varQnty", "logRecL", "recPrCas", "recNumTot"),
    "dataDscr": ("varGrp", "nCubeGrp", "var", "nCube", "notes"),
    "var": ("location", "labl", "valrng", "universe", "sumStat", "txt", "catgry", "concept", "varFormat", "notes"),
    "catgry": ("catValu", "labl", "txt", "catStat"),
}
"""Which elements of DDI-Codebook 2.5 may stand in which, and in what order (those that are used, and some more)."""


def test_a_codebook_has_the_published_shape(made: Folder) -> None:
    root = ET.fromstring(text(made, "ddi"))
    assert root.tag == f"{{{NAMESPACE}}}codeBook"
    ids = {element.get("ID") for element in root.iter() if element.get("ID")}
    for element in root.iter():
        name, children = _local(element.tag), [_local(child.tag) for child in element]
        assert children == sorted(children, key=ORDER.get(name, ()).index), name
        assert (element.get("files") or element.get("ID")) in ids | {None}
    released = made.certificate["schema"]["released"]
    assert [each.get("name") for each in root.iter(f"{{{NAMESPACE}}}var")] == released
    (rows,) = root.iter(f"{{{NAMESPACE}}}caseQnty")
    assert rows.text == str(made.certificate["evidence"]["rows"])


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


ENTRY: dict[str, Any] = {
    "url_slug": str,
    "deployment": {
        "basic": {
            "name": str,
            "data_curators": list,
            "description": str,
            "intended_use": str,
            "data_product_type": {"Summary statistics", "Machine learning model", "Dataset"},
            "data_product_region": str,
            "data_product_sector": str,
            "publication_date": str,
        },
        "dp_variant": {
            "variant_name": {"Pure DP", "Approximate DP"},
            "data_domain": str,
            "unprotected_quantities": str,
        },
        "privacy_loss": {
            "privacy_unit": str,
            "privacy_unit_details": str,
            "privacy_parameters": {"epsilon": float, "delta": float},
            "privacy_parameters_details": str,
        },
        "deployment_model": {
            "model_name": {"Local", "Central", "Shuffle", "Federated"},
            "trust_assumptions": str,
            "release_type": {"One release", "Many releases"},
            "data_source_type": str,
            "access_type": {"Interactive", "Non-interactive"},
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": str,
            "mechanisms": str,
            "composition": str,
            "justification": str,
        },
        "administrative": {"status": {"Draft"}, "registry_authors": list, "tier": int},
    },
}
"""The registry's fields, those that are filled here, and what each may hold."""


def fits(value: Any, shape: Any) -> bool:
    if isinstance(shape, dict):
        return isinstance(value, dict) and set(value) == set(shape) and all(fits(value[k], shape[k]) for k in shape)
    return value in shape if isinstance(shape, set) else isinstance(value, shape)


def test_an_entry_of_the_registry_has_the_published_shape(made: Folder) -> None:
    entry = YAML(typ="safe").load(text(made, "dp-registry"))
    assert fits(entry, ENTRY)
    spent, lost = made.certificate["accounting"]["spent"], entry["deployment"]["privacy_loss"]["privacy_parameters"]
    for name in ("epsilon", "delta"):
        assert float(spent[name]) <= lost[name] <= float(spent[name]) * (1 + 1e-12), "rounded up, never down"
    assert entry["deployment"]["deployment_model"]["access_type"] == "Non-interactive"
    assert "filled in" in entry["deployment"]["deployment_model"]["data_source_type"], "no certificate knows it"
    assert entry["deployment"]["basic"]["data_curators"][0]["data_curator_name"] == WHO.curator


def test_what_has_no_epsilon_is_no_deployment_but_is_described(tmp_path: Path) -> None:
    release = {"method": "full-domain", "k": 5, "lowest": {"zip": 1}}
    made = release_into(tmp_path / "exact", release=release, budget={"unbounded": "a test"})
    with pytest.raises(InvalidParameter, match="not differentially private"):
        exported(made.out, "dp-registry")
    for form in ("croissant", "ddi", "ro-crate"):
        assert "No epsilon" in text(made, form)


@pytest.mark.parametrize("form", FORMS)
def test_the_public_part_alone_is_read_and_what_is_unknown_is_said(made: Folder, form: str, tmp_path: Path) -> None:
    alone = Folder(tmp_path / "alone")
    alone.path.mkdir()
    alone.out.mkdir()
    for file in made.out.iterdir():
        (alone.out / file.name).write_bytes(file.read_bytes())
    nothing = PublisherInfo()
    assert text(alone, form, nothing) == text(made, form, nothing)
    assert "--curator" in exported(alone.out, form, nothing).notes[0]
    assert not exported(alone.out, form, WHO).notes


@pytest.mark.parametrize("form", FORMS)
def test_a_changed_file_is_not_described(made: Folder, form: str, tmp_path: Path) -> None:
    changed = made.copied(tmp_path / "changed")
    data = next(file for file in changed.out.iterdir() if file.name.startswith("data"))
    data.write_bytes(data.read_bytes()[:-1])
    with pytest.raises(InvalidParameter, match="is not exported"):
        export(changed.out, form, tmp_path / "form")
    assert not (tmp_path / "form").exists()


def test_the_command_writes_a_new_file_or_nothing(
    made: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "ddi.xml"
    words = ["export", str(made.out), "--to", "ddi", "--out", str(out), "--curator", "City Hospital", "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["file"] == str(out)
    before = out.read_bytes()
    assert main(words) == 2
    assert main([*words[:3], "codebook", *words[4:]]) == 2
    assert main([*words[:5], str(tmp_path / "nowhere" / "ddi.xml")]) == 2
    assert out.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["ddi.xml"]


def test_names_and_values_cannot_break_out_of_a_form(tmp_path: Path) -> None:
    """A dataset's name, and everything else, is text in whatever form it stands."""
    name = '<script>"]]>: &'
    made = release_into(tmp_path / "odd", dataset={"name": name})
    for form in FORMS:
        assert text(made, form)
    assert next(ET.fromstring(text(made, "ddi")).iter(f"{{{NAMESPACE}}}titl")).text == name
    assert json.loads(text(made, "croissant"))["name"] == name
    assert YAML(typ="safe").load(text(made, "dp-registry"))["deployment"]["basic"]["name"] == name
    told = PublisherInfo(curator="no \x00 text, and < & >")
    assert next(ET.fromstring(text(made, "ddi", told)).iter(f"{{{NAMESPACE}}}AuthEnty")).text == (
        "no \ufffd text, and < & >"
    )
