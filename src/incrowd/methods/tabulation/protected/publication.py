"""Publication: a protected table as a crosstab in CSV, XLSX and HTML, and as SDMX-CSV, from its published cells alone.

Every suppressed cell has the same code.  There are no formulas and no stored sums.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.schema import OTHER
from incrowd.core.spreadsheet import guard

SUPPRESSED = "x"
CROSSTAB, PAGE, WORKBOOK, SDMX = "table.csv", "table.html", "table.xlsx", "table.sdmx.csv"
DOCUMENTS = (CROSSTAB, PAGE, WORKBOOK, SDMX)
"""The files beside one table; of several, those of each have its number in their names."""
_NOTE = f"{SUPPRESSED} = suppressed to protect respondents"
_MISSING, _SDMX_TOTAL, _SDMX_UNKNOWN = "missing", "_T", "_U"
_EPOCH = (1980, 1, 1, 0, 0, 0)

Line = Sequence[str | int]


def document_names(tables: int) -> tuple[str, ...]:
    """Return the names of the files beside so many tables.

    >>> document_names(2)[3:5]
    ('table.1.sdmx.csv', 'table.2.csv')
    """
    if tables == 1:
        return DOCUMENTS
    return tuple(name.replace(".", f".{number}.", 1) for number in range(1, tables + 1) for name in DOCUMENTS)


def documents_of(tables: Sequence[pa.Table]) -> dict[str, str | bytes]:
    """Return the files that are published beside some tables of cells."""
    contents = [content for table in tables for content in _documents(table)]
    return dict(zip(document_names(len(tables)), contents, strict=True))


def _documents(table: pa.Table) -> tuple[str | bytes, ...]:
    """Return the contents of the files beside a table of cells: labels in columns, then the numbers.

    >>> cells = pa.table({"sex": ["*", "F", "M"], "count": [9, None, None]})
    >>> _documents(cells)[0].splitlines()
    ['sex,count', '*,9', 'F,x', 'M,x']
    """
    lines = list(crosstab(table))
    return _csv(map(_guarded, lines)), _page(table, lines), _workbook(lines), _csv(_sdmx(table))


def crosstab(table: pa.Table) -> Iterator[Line]:
    """Yield the lines of a crosstab: the labels of all columns but the last one as rows, those of the last across.

    A line of missing or undeclared values that holds 0 throughout is left out.
    """
    *names, number = table.column_names
    table = _occurring(table)
    labels = [_named(table[name].to_pylist(), {None: _MISSING}) for name in names]
    cells = [SUPPRESSED if value is None else int(value) for value in table[number].to_pylist()]
    if len(names) == 1:
        yield [names[0], number]
        yield from ([label, cell] for label, cell in zip(labels[0], cells, strict=True))
        return
    across = list(dict.fromkeys(labels[-1]))
    yield [*names[:-1], *across]
    for start in range(0, len(cells), len(across)):
        yield [*(column[start] for column in labels[:-1]), *cells[start : start + len(across)]]


def _occurring(table: pa.Table) -> pa.Table:
    """Return the cells without lines of missing or undeclared values that are published as 0 throughout.

    >>> _occurring(pa.table({"sex": ["*", "F", "other", None], "count": [9, 9, 0, None]})).to_pylist()[-1]
    {'sex': None, 'count': None}
    """
    *names, number = table.column_names
    zero = pc.fill_null(pc.equal(table[number], 0), False).to_numpy(zero_copy_only=False)
    occurs = np.ones(len(table), np.bool_)
    for name in names:
        labels = np.array(table[name].to_pylist(), object)
        for label in (None, OTHER):
            line = labels == label
            if zero[line].all():
                occurs &= ~line
    return table.filter(pa.array(occurs))


def _sdmx(table: pa.Table) -> Iterator[Line]:
    *names, number = table.column_names
    yield ["DATAFLOW", *_ids(names), "OBS_VALUE", "OBS_STATUS", "CONF_STATUS"]
    columns = []
    for name in names:
        values = table[name].to_pylist()
        columns.append(_named(values, {values[0]: _SDMX_TOTAL, None: _SDMX_UNKNOWN}))
    for *codes, value in zip(*columns, table[number].to_pylist(), strict=True):
        status = ["", "Q", "C"] if value is None else [int(value), "A", "F"]
        yield ["INCROWD:TABLE(1.0)", *codes, *status]


def _ids(names: Sequence[str]) -> list[str]:
    """Return names as SDMX allows them for dimensions, each another one."""
    plain = [re.sub(r"\W", "_", name, flags=re.ASCII).upper() for name in names]
    ids = [name if name[:1].isalpha() else f"D{name}" for name in plain]
    return ids if len(set(ids)) == len(ids) else [f"{name}_{place}" for place, name in enumerate(ids, 1)]


def _named(values: Sequence[str | None], names: Mapping[str | None, str]) -> list[str]:
    """Return labels with names in place of some; where another label has that name, it gets more underscores.

    >>> _named(["*", "missing", None], {None: "missing"})
    ['*', 'missing', 'missing_']
    """
    taken, codes = {value for value in values if value not in names}, dict[str | None, str]()
    for value, name in names.items():
        code = name
        while code in taken:
            code += "_"
        codes[value] = code
        taken.add(code)
    return [codes.get(value) or value or "" for value in values]


def _guarded(line: Line) -> Line:
    """Return a line for spreadsheet programs: no label is a formula."""
    texts = iter(guard(pa.array([cell for cell in line if isinstance(cell, str)], pa.string())).to_pylist())
    return [next(texts) if isinstance(cell, str) else cell for cell in line]


def _csv(lines: Iterable[Line]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def _page(table: pa.Table, lines: Sequence[Line]) -> str:
    heads = max(1, table.num_columns - 2)
    title = escape(f"{table.column_names[-1]} by {' × '.join(table.column_names[:-1])}")
    rows = "\n".join(
        f"<tr>{''.join(_cell(cell, head=place < heads) for place, cell in enumerate(line))}</tr>" for line in lines[1:]
    )
    head = "".join(f'<th scope="col">{escape(str(cell))}</th>' for cell in lines[0])
    note = f"<p>{_NOTE}</p>" if table[table.num_columns - 1].null_count else ""
    style = (
        "body{font:16px/1.5 system-ui,sans-serif;margin:1rem}div{overflow-x:auto}table{border-collapse:collapse}"
        "th,td{padding:.2rem .6rem;border-bottom:1px solid #ccc;text-align:right}th{text-align:left}td.x{color:#666}"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{style}</style></head>\n<body><div><table><caption>{title}</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>{note}</body></html>\n"
    )


def _cell(cell: str | int, *, head: bool) -> str:
    if head:
        return f'<th scope="row">{escape(str(cell))}</th>'
    if cell == SUPPRESSED:
        return f'<td class="x" title="suppressed">{SUPPRESSED}</td>'
    return f"<td>{cell:,}</td>"


_TYPES = (
    '<?xml version="1.0" encoding="UTF-8"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.'
    'sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.spreadsheetml.worksheet+xml"/></Types>'
)
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELATED = (
    '<?xml version="1.0" encoding="UTF-8"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/'
    f'relationships"><Relationship Id="r1" Type="{_RELATIONS}/{{0}}" Target="{{1}}"/></Relationships>'
)
_BOOK = (
    f'<?xml version="1.0" encoding="UTF-8"?><workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}"><sheets>'
    '<sheet name="table" sheetId="1" r:id="r1"/></sheets></workbook>'
)


def _workbook(lines: Sequence[Line]) -> bytes:
    """Return a workbook of one sheet with texts and numbers, the same bytes every time."""
    rows = "".join(f"<row>{''.join(map(_entry, line))}</row>" for line in lines)
    sheet = (
        f'<?xml version="1.0" encoding="UTF-8"?><worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData></worksheet>'
    )
    parts = {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": _RELATED.format("officeDocument", "xl/workbook.xml"),
        "xl/workbook.xml": _BOOK,
        "xl/_rels/workbook.xml.rels": _RELATED.format("worksheet", "worksheets/sheet1.xml"),
        "xl/worksheets/sheet1.xml": sheet,
    }
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as book:
        for name, text in parts.items():
            book.writestr(zipfile.ZipInfo(name, _EPOCH), text.encode())
    return target.getvalue()


def _entry(cell: str | int) -> str:
    if isinstance(cell, int):
        return f"<c><v>{cell}</v></c>"
    text = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "\ufffd", cell)
    return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(text)}</t></is></c>'
