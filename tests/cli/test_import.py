"""`incrowd import`: projects of ARX and metadata of τ-ARGUS; hostile ones are refused and leave nothing behind."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from incrowd.errors import SourceUnreadable
from incrowd.workflows.imports import arx
from incrowd.workflows.imports.imports import read_project
from incrowd.workflows.policy.policy import load_policy
from tests.cli.running import Runner

PROJECT = '<project><name>A: "project"</name><separator>;</separator></project>'
CONFIG = """<config><relativeMaxOutliers>0.25</relativeMaxOutliers><criteria>
<criterion>3-anonymity</criterion><criterion>distinct-2-diversity for attribute 'diagnosis'</criterion>
<criterion>0.4-closeness with equal ground-distance for attribute 'diagnosis'</criterion>
<criterion>(0.1)-something-else</criterion><criterion>Inclusion</criterion></criteria></config>"""
ASSIGNED = """<assigment><name>{name}</name><type>{role}_ATTRIBUTE</type><datatype>{kind}</datatype>
<ref>{ref}</ref><min>{least}</min><max>All</max></assigment>"""
COLUMNS = [
    ("who", "IDENTIFYING", "String", "", "All"),
    ("age", "QUASI_IDENTIFYING", "Integer", "hierarchies/age.csv", "1"),
    ("Größe", "QUASI_IDENTIFYING", "String", "hierarchies/Größe.csv", "All"),
    ("diagnosis", "SENSITIVE", "String", "", "All"),
    ("ward", "INSENSITIVE", "String", "", "All"),
]
ROWS = "who;age;Größe;diagnosis;ward\n" + "".join(
    f"p{n};{n % 6 + 30};{'klein' if n % 2 else 'groß'};{'flu' if n % 3 else 'gout'};w{n % 4}\n" for n in range(120)
)


def members(columns: list[tuple[str, str, str, str, str]] = COLUMNS) -> dict[str, str]:
    keys = ("name", "role", "kind", "ref", "least")
    assigned = "".join(ASSIGNED.format(**dict(zip(keys, column, strict=True))) for column in columns)
    return {
        "project.xml": PROJECT,
        "input/config.xml": CONFIG,
        "input/definition.xml": f"<definition>{assigned}</definition>",
        "input/hierarchies/age.csv": "".join(f"{age};30-35;*\n" for age in range(30, 36)),
        "input/hierarchies/Größe.csv": "klein;*\ngroß;*\n",
        "data/input.csv": ROWS,
    }


def packed(folder: Path, content: dict[str, str]) -> Path:
    path = folder / "project.deid"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in content.items():
            archive.writestr(name, text)
    return path


def test_a_project_of_arx_becomes_a_policy_that_can_be_released(run: Runner, tmp_path: Path) -> None:
    packed(tmp_path, members())
    outcome = run("import project.deid --out imported --json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["left_out"] == ["the criterion '(0.1)-something-else': choose one of incrowd's"]
    policy = load_policy(tmp_path / "imported" / "policy.yaml")
    roles = {column.name: str(column.role) for column in policy.schema.columns}
    assert roles == {"who": "identifier", "age": "quasi", "Größe": "quasi", "diagnosis": "sensitive", "ward": "plain"}
    assert policy.schema["age"].type == "integer"
    assert policy.schema.drafted == ("age", "Größe", "diagnosis", "ward")
    released = run("release --policy imported/policy.yaml --out out")
    assert released.code == 0, released.err
    kinds = {claim.kind for claim in policy.plan.claims}
    assert kinds >= {"k-anonymity", "distinct l-diversity", "t-closeness"}
    assert run("verify out --policy imported/policy.yaml").code == 0


@pytest.mark.parametrize("number", ["", "2", "3", "4", "5"])
def test_the_example_projects_of_arx_are_imported(number: str, tmp_path: Path) -> None:
    path = Path(__file__).parents[3] / "shared" / "data" / "arx-projects" / f"example{number}.deid"
    if not path.is_file():
        pytest.skip("the example projects are not at hand")
    project = read_project(path)
    policy = load_policy(project.write(tmp_path / "imported"))
    assert len(policy.schema.columns) in (9, 30)
    assert (project.release["k"] == "5") is (number != "3")


def _with(name: str, text: str) -> Callable[[dict[str, str]], dict[str, str]]:
    return lambda content: {**content, name: text}


_BOMB = "<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;'>]><project><name>&b;</name></project>"
_OUTSIDE = "<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/hostname'>]><project><name>&a;</name></project>"
HOSTILE: dict[str, Callable[[dict[str, str]], dict[str, str]]] = {
    "entities": _with("project.xml", _BOMB),
    "an external entity": _with("project.xml", _OUTSIDE),
    "deep XML": _with("input/config.xml", "<a>" * 5000 + "</a>" * 5000),
    "many elements": _with("input/definition.xml", "<definition>" + "<assigment/>" * 5000 + "</definition>"),
    "broken XML": _with("input/config.xml", "<config>"),
    "a large document": _with("project.xml", "<project>" + " " * (arx.XML_BYTES + 1) + "</project>"),
    "no columns": _with("input/definition.xml", "<definition></definition>"),
    "a broken hierarchy": _with("input/hierarchies/age.csv", "1;a;*\n1;b;*\n"),
    "an unknown role": _with("input/definition.xml", "<definition><assigment><name>x</name></assigment></definition>"),
    "a bomb": _with("data/input.csv", "0" * (arx.DATA_BYTES + (1 << 20))),
    "many members": lambda content: content | {f"m{n}": "" for n in range(arx.MEMBERS)},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_project_is_refused_and_leaves_nothing(name: str, run: Runner, tmp_path: Path) -> None:
    packed(tmp_path, HOSTILE[name](members()))
    outcome = run("import project.deid --out imported")
    assert outcome.code == 2
    assert not (tmp_path / "imported").exists()
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"not a zip" * 100])
def test_a_damaged_archive_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "project.deid").write_bytes(content)
    with pytest.raises(SourceUnreadable, match="not an ARX project"):
        read_project(tmp_path / "project.deid")


def test_no_name_in_a_project_becomes_a_path(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a;b\n", encoding="utf-8")
    outside = [("x", "QUASI_IDENTIFYING", "String", "../../secret.csv", "All")]
    with pytest.raises(SourceUnreadable, match="outside of the archive"):
        read_project(packed(tmp_path, members(outside)))
    wild = [("../../x", "QUASI_IDENTIFYING", "String", "hierarchies/age.csv", "All"), *COLUMNS[1:3]]
    content = members(wild) | {"../../evil.csv": "x"}
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    policy = load_policy(read_project(packed(tmp_path, content)).write(folder / "imported"))
    written = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    assert written[0].startswith("a/b/imported/data.csv")
    assert [name for name in written if "imported" not in name] == ["project.deid", "secret.csv"]
    assert policy.schema.names[0] == "../../x"


RDA = """REGION 1 4 "9999"
    <RECODEABLE>
    <HIERARCHICAL>
    <HIERCODELIST> "C:\\data\\region.hrc"
    <HIERLEADSTRING> "@"
SIZE 5 2 99
    <RECODEABLE>
    <HIERARCHICAL>
    <HIERLEVELS> 1 1
TURNOVER 8 6
    <NUMERIC>
    <DECIMALS> 0
WEIGHT 15 3
    <NUMERIC>
    <WEIGHT>
"""
ASC = "".join(f"{'R' + str(n % 4):<4}{n % 3}{n % 2} {100 + n:>6} {1:>3}\r\n" for n in range(60))


def test_metadata_of_tau_argus_becomes_a_table_with_totals(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "firms.rda").write_text(RDA, encoding="utf-8")
    (tmp_path / "region.hrc").write_text("North\n@R0\n@R1\nSouth\n@R2\n@R3\n", encoding="utf-8")
    (tmp_path / "firms.asc").write_text(ASC, encoding="utf-8", newline="")
    outcome = run("import firms.rda --data firms.asc --out imported --json")
    assert outcome.code == 0, outcome.err
    policy = load_policy(tmp_path / "imported" / "policy.yaml")
    region, size, turnover, weight = policy.schema.columns
    assert region.hierarchy.labels(1) == ("North", "South")
    assert region.clean is not None
    assert region.clean.missing == ("9999",)
    assert (size.hierarchy.depth, str(turnover.type), str(weight.role)) == (1, "decimal", "weight")
    lines = (tmp_path / "imported" / "data.csv").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["REGION,SIZE,TURNOVER,WEIGHT", "R0,00,100,1"]
    assert len(lines) == 61
    assert policy.schema.drafted == ("REGION",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "RDX3\n\0\0",
        "REGION x y",
        "REGION 0 4",
        'REGION 1 4\n<HIERCODELIST> "../../etc/passwd"',
        'REGION 1 4\n<HIERCODELIST> "..\\..\\secret.hrc"',
        'REGION 1 4\n<HIERCODELIST> "nothing.hrc"',
        "A 1 1\nA 2 1",
        "\n".join(f"V{n} {n + 1} 1" for n in range(1001)),
    ],
)
def test_hostile_metadata_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.rda").write_text(text, encoding="utf-8")
    with pytest.raises(SourceUnreadable):
        read_project(tmp_path / "x.rda")
