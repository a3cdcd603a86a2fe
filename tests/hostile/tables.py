"""Hostile tables: small files that grow when they are read, and files that break their format."""

from __future__ import annotations

import bz2
import gzip
import os
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.hostile.documents import LARGE, MARK, Make

_SPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def _file(name: str, content: bytes, verb: str = "check") -> Make:
    def make(folder: Path) -> list[str]:
        (folder / name).write_bytes(content)
        return [verb, name]

    return make


def _written(name: str, write: Callable[[Path], object], verb: str = "check") -> Make:
    def make(folder: Path) -> list[str]:
        write(folder / name)
        return [verb, name]

    return make


def _repeated_text(path: Path) -> None:
    """Write 200 GB of text as one entry of a dictionary."""
    codes = pa.array(np.zeros(200_000, np.int32))
    pq.write_table(pa.table({"a": pa.DictionaryArray.from_arrays(codes, ["x" * 10**6])}), path)


def _many_rows(path: Path) -> None:
    pq.write_table(pa.table({"a": pa.nulls(50_000_000, pa.int8())}), path, row_group_size=50_000_000)


def _many_texts(path: Path) -> None:
    codes = pa.array(np.zeros(20_000_000, np.int8))
    column = pa.DictionaryArray.from_arrays(codes, ["a value of some length, to be repeated"])
    pq.write_table(pa.table({"a": column, "b": column}), path, row_group_size=20_000_000, compression="zstd")


def _plain_text(path: Path) -> None:
    chunk = pa.array(["x" * 1000] * 50_000)
    table = pa.table({"a": pa.chunked_array([chunk] * 30)})
    pq.write_table(table, path, row_group_size=2_500_000, use_dictionary=False, compression="zstd")


def _long_list(path: Path) -> None:
    values = pa.ListArray.from_arrays(pa.array([0, 50_000_000]), pa.nulls(50_000_000, pa.int8()))
    pq.write_table(pa.table({"a": values}), path)


def _wide(path: Path) -> None:
    pq.write_table(pa.table({f"c{number}": [1] for number in range(5_000)}), path)


def _broken_footer(place: int, content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        pq.write_table(pa.table({"a": ["x"] * 1000}), path)
        whole = bytearray(path.read_bytes())
        whole[place : place + len(content) or None] = content
        path.write_bytes(bytes(whole))

    return write


def _arrow(path: Path) -> None:
    with pa.ipc.new_file(str(path), pa.schema({"a": pa.string()})) as file:
        file.write_table(pa.table({"a": ["x"] * 1000}))
    whole = path.read_bytes()
    path.write_bytes(whole.replace((1001 * 4).to_bytes(8, "little"), (2**60).to_bytes(8, "little")))


def _workbook(sheet: Callable[[zipfile.ZipFile], None], megabytes: int = 0) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
            kinds = "".join(
                f'<Override PartName="/xl/{part}" ContentType="application/vnd.openxmlformats-officedocument.'
                f'spreadsheetml.{kind}+xml"/>'
                for part, kind in (
                    ("workbook.xml", "sheet.main"),
                    ("worksheets/sheet1.xml", "worksheet"),
                    ("sharedStrings.xml", "sharedStrings"),
                )
            )
            default = (
                '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            )
            book.writestr("[Content_Types].xml", f'<Types xmlns="{_PACKAGE}/content-types">{default}{kinds}</Types>')
            book.writestr("_rels/.rels", _relations(("officeDocument", "xl/workbook.xml")))
            inner = '<sheets><sheet name="a" sheetId="1" r:id="rId1"/></sheets>'
            book.writestr("xl/workbook.xml", f'<workbook xmlns="{_SPACE}" xmlns:r="{_RELATIONS}">{inner}</workbook>')
            parts = (("worksheet", "worksheets/sheet1.xml"), ("sharedStrings", "sharedStrings.xml"))
            book.writestr("xl/_rels/workbook.xml.rels", _relations(*parts))
            with book.open("xl/sharedStrings.xml", "w", force_zip64=True) as file:
                file.write(f'<sst xmlns="{_SPACE}"><si><t>a'.encode())
                for _ in range(megabytes):
                    file.write(b"x" * 10**6)
                file.write(b"</t></si></sst>")
            sheet(book)

    return write


def _relations(*parts: tuple[str, str]) -> str:
    listed = "".join(
        f'<Relationship Id="rId{number}" Type="{_RELATIONS}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(parts, 1)
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{listed}</Relationships>'


def _sheet(rows: bytes, times: int = 1, before: bytes = b"") -> Callable[[zipfile.ZipFile], None]:
    def write(book: zipfile.ZipFile) -> None:
        with book.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as file:
            file.write(before + f'<worksheet xmlns="{_SPACE}"><sheetData>'.encode())
            for _ in range(times):
                file.write(rows)
            file.write(b"</sheetData></worksheet>")

    return write


_ROW = b"<row>" + b'<c t="inlineStr"><is><t>abcdefgh</t></is></c>' * 20 + b"</row>"
_LAUGHS = (
    b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
    + b"".join(f'<!ENTITY {chr(98 + number)} "{f"&{chr(97 + number)};" * 10}">'.encode() for number in range(9))
    + b"]>"
)


def _lake(folder: Path) -> list[str]:
    (folder / "lake").mkdir()
    os.mkfifo(folder / "lake" / "a.parquet")
    return ["check", "lake"]


def _many_entries(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as book:
        for number in range(50_000):
            book.writestr(f"xl/worksheets/sheet{number}.xml", "")


def _gzip_bomb(path: Path) -> None:
    member = gzip.compress(b"a,b\n" + b"1,2\n" * 5_000_000, 1)
    path.write_bytes(member * 300)


def _bzip_bomb(path: Path) -> None:
    path.write_bytes(bz2.compress(b"1,2\n" * 1_000_000) * 5_000)


def _zstd_bomb(path: Path) -> None:
    with pa.CompressedOutputStream(str(path), "zstd") as stream:
        for _ in range(200):
            stream.write(b"1,2\n" * 2_500_000)


def _sqlite(*statements: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with sqlite3.connect(path) as database:
            for statement in statements:
                database.execute(statement)
        database.close()

    return write


def _duckdb(*statements: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        import duckdb

        (path.parent / "outside.csv").write_text(f"{MARK}\n1\n")
        with duckdb.connect(str(path)) as database:
            for statement in statements:
                database.execute(statement.format(outside=path.parent / "outside.csv"))

    return write


_ENDLESS = "CREATE VIEW v AS WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n) SELECT a FROM n"


def _project(members: dict[str, str | bytes], times: int = 1) -> Make:
    """Make a project of ARX, its data repeated so many times."""
    plain: dict[str, str | bytes] = {
        "project.xml": "<project><separator>;</separator></project>",
        "input/config.xml": "<config><criteria><criterion>2-anonymity</criterion></criteria></config>",
        "input/definition.xml": "<definition><assigment><name>a</name><type>INSENSITIVE_ATTRIBUTE</type></assigment>"
        "</definition>",
    }

    def make(folder: Path) -> list[str]:
        with zipfile.ZipFile(folder / "a.deid", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in (plain | members).items():
                archive.writestr(name, content)
            with archive.open("data/input.csv", "w", force_zip64=True) as data:
                data.write(b"a\n")
                for _ in range(times):
                    data.write(b"1;" * (1 << 19))
        return ["import", "a.deid", "--out", "imported"]

    return make


def _half_project(folder: Path) -> list[str]:
    (folder / "a.deid").write_bytes(b"PK\x03\x04" + bytes(1000))
    return ["import", "a.deid", "--out", "imported"]


def _metadata(text: Callable[[], str]) -> Make:
    def make(folder: Path) -> list[str]:
        (folder / "a.rda").write_text(text(), encoding="utf-8")
        return ["import", "a.rda", "--out", "imported"]

    return make


_ENTITIES = "<!DOCTYPE x [<!ENTITY a0 'aaaaaaaa'>" + "".join(
    "<!ENTITY a{} '{}'>".format(number, 20 * f"&a{number - 1};") for number in range(1, 10)
)

TABLES: dict[str, Make] = {
    "deid: data of 2 GB in one line": _project({}, times=2000),
    "deid: entities without end": _project({"project.xml": _ENTITIES + "]><project><name>&a8;</name></project>"}),
    "deid: a file of others": _project(
        {"project.xml": "<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><project><name>&a;</name></project>"}
    ),
    "deid: XML of 60 MB": _project({"input/config.xml": b"<config>" + b"<a></a>" * (LARGE // 7) + b"</config>"}),
    "deid: XML of great depth": _project({"input/config.xml": "<a>" * 10**6}),
    "deid: names with ..": _project(
        {
            "../../a": "x",
            "input/definition.xml": "<definition><assigment><name>../../../a</name><type>QUASI_IDENTIFYING_ATTRIBUTE"
            "</type><ref>../../../../etc/passwd</ref></assigment></definition>",
        }
    ),
    "deid: half an archive": _half_project,
    "rda: names with ..": _metadata(lambda: 'A 1 1\n<HIERCODELIST> "../../../etc/passwd"\n'),
    "rda: a million variables": _metadata(lambda: "".join(f"V{n} {n + 1} 1\n" for n in range(10**6))),
    "csv: one line of 60 MB": _written("a.csv", lambda path: path.write_bytes(b"x" * LARGE)),
    "csv: 60 MB of newlines": _written("a.csv", lambda path: path.write_bytes(b"\n" * LARGE)),
    "csv: 60 MB of quotes": _written("a.csv", lambda path: path.write_bytes(b'a,b\n1,"' + b'""' * (LARGE // 2))),
    "csv: a million columns": _written(
        "a.csv", lambda path: path.write_text(",".join(map(str, range(10**6))) + "\n1\n")
    ),
    "csv: 30 million commas": _written("a.csv", lambda path: path.write_bytes(b"," * 30_000_000 + b"\n")),
    "csv: names of a megabyte": _file("a.csv", b"a" * 10**6 + b"," + b"b" * 10**6 + b"\n1,2\n"),
    "csv: 10 MB of nulls": _file("a.csv", bytes(10**7)),
    "csv: numbers of 1e999999999": _file("a.csv", b"a\n" + b"1e999999999\n" * 1000, "profile"),
    "csv: numbers of 100,000 digits": _file("a.csv", b"a\n" + (b"9" * 100_000 + b"\n") * 100, "profile"),
    "csv: half of UTF-16": _file("a.csv", b"\xff\xfe" + b"a\0,\0\n\0\xd8" * 10**6),
    "csv: 60 MB of different values": _written(
        "a.csv", lambda path: path.write_text("a\n" + "\n".join(map(str, range(7_500_000)))), "profile"
    ),
    "csv.gz: 6 GB": _written("a.csv.gz", _gzip_bomb),
    "csv.bz2: 20 GB": _written("a.csv.bz2", _bzip_bomb),
    "csv.zst: 2 GB": _written("a.csv.zst", _zstd_bomb),
    "csv.gz: cut off": _file("a.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 10**5)[:-100]),
    "csv: a pipe": _written("a.csv", os.mkfifo),
    "csv: a link to a device": _written("a.csv", lambda path: path.symlink_to("/dev/zero"), "profile"),
    "parquet: 200 GB of one text": _written("a.parquet", _repeated_text),
    "parquet: 1.5 GB of plain text": _written("a.parquet", _plain_text),
    "parquet: 20 million rows of text": _written("a.parquet", _many_texts, "profile"),
    "parquet: 50 million missing values": _written("a.parquet", _many_rows),
    "parquet: a list of 50 million": _written("a.parquet", _long_list),
    "parquet: 5,000 columns": _written("a.parquet", _wide),
    "parquet: a footer of 4 GB": _written("a.parquet", _broken_footer(-8, b"\xff\xff\xff\xff")),
    "parquet: a broken footer": _written("a.parquet", _broken_footer(-60, b"\xff" * 40)),
    "parquet: broken pages": _written("a.parquet", _broken_footer(8, b"\xff" * 20)),
    "parquet: a folder with a pipe": _lake,
    "arrow: a length of 2^60": _written("a.arrow", _arrow),
    "workbook: 400 MB of cells": _written("a.xlsx", _workbook(_sheet(_ROW * 1000, 430))),
    "workbook: 700 MB of shared text": _written(
        "a.xlsx",
        _workbook(_sheet(b"<row><c t='s'><v>0</v></c></row>"), 700),
    ),
    "workbook: entities that grow": _written("a.xlsx", _workbook(_sheet(b"<row><c><v>&j;</v></c></row>", 1, _LAUGHS))),
    "workbook: a cell in the last row and column": _written(
        "a.xlsx",
        _workbook(
            _sheet(b'<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>')
        ),
    ),
    "workbook: 50,000 entries": _written("a.xlsx", _many_entries),
    "workbook: not a zip": _file("a.xlsx", b"PK\x03\x04" + b"\xff" * 10**6),
    "sqlite: an endless view": _written("a.sqlite", _sqlite(_ENDLESS)),
    "sqlite: a value of 900 MB": _written(
        "a.sqlite", _sqlite("CREATE VIEW v AS SELECT zeroblob(900000000) AS a, hex(zeroblob(400000000)) AS b")
    ),
    "sqlite: 1,900 columns": _written(
        "a.sqlite",
        _sqlite(
            f"CREATE TABLE t ({', '.join(f'c{n}' for n in range(1900))})",
            f"INSERT INTO t VALUES ({', '.join('1' * 1900)})",
        ),
    ),
    "sqlite: broken": _file("a.sqlite", b"SQLite format 3\0" + b"\xff" * 10**6),
    "duckdb: a view of a file outside": _written(
        "a.duckdb", _duckdb("CREATE VIEW v AS SELECT * FROM read_csv('{outside}')"), "profile"
    ),
    "duckdb: an endless view": _written(
        "a.duckdb", _duckdb("CREATE VIEW v AS SELECT a.range AS a FROM range(10000000000) a"), "profile"
    ),
    "duckdb: broken": _file("a.duckdb", bytes(8) + b"DUCK" + b"\xff" * 10**6),
    "stata: broken": _file("a.dta", b"<stata_dta><header><release>118</release>" + b"\xff" * 10**5),
    "spss: broken": _file("a.sav", b"$FL2" + b"\xff" * 10**5),
    "sas: broken": _file("a.sas7bdat", bytes(12) + b"\xc2\xea\x81\x60" + b"\xff" * 10**5),
}
