"""The tables of the system catalog: their columns, constants, and what is declared; no row is read.

Numbers of rows, sizes and statistics are constants.  Tables and columns are those that psql, psycopg, SQLAlchemy, JDBC,
ODBC and R ask for; all others do not exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from incrowd.errors import InvalidParameter
from incrowd.queries.declarations import PERSON_NOTE, all_columns

SERVER_VERSION = "15.0"
SCHEMA, DATABASE, TYPE_TABLE = "public", "incrowd", "incrowd_types"
TYPE_OIDS = {"boolean": 16, "integer": 20, "text": 25, "decimal": 701, "date": 1082}
_TYPE_NAMES = {"boolean": "boolean", "integer": "bigint", "text": "text", "decimal": "double precision", "date": "date"}
_INTERNAL = {"boolean": "bool", "integer": "int8", "text": "text", "decimal": "float8", "date": "date"}
_PRECISIONS: dict[str, dict[str, int]] = {
    "integer": {"numeric_precision": 64, "numeric_precision_radix": 2, "numeric_scale": 0},
    "decimal": {"numeric_precision": 53, "numeric_precision_radix": 2},
    "date": {"datetime_precision": 0},
}
_SIZES = {"boolean": 1, "integer": 8, "text": -1, "decimal": 8, "date": 4}
_OTHER_TYPES = (
    ("char", 18, 1), ("name", 19, 64), ("int2", 21, 2), ("int4", 23, 4), ("oid", 26, 4), ("json", 114, -1),
    ("float4", 700, 4), ("unknown", 705, -2), ("bpchar", 1042, -1), ("varchar", 1043, -1), ("timestamp", 1114, 8),
    ("timestamptz", 1184, 8), ("numeric", 1700, -1),
)  # fmt: skip
_NAMESPACES = {"pg_catalog": 11, SCHEMA: 2200, "information_schema": 13000}
_CLASSES = {"pg_type": 1247, "pg_class": 1259, "pg_namespace": 2615, "pg_constraint": 2606, "pg_proc": 1255}
_OWNER, _FIRST, _TABLESPACE = 10, 16384, 1663

_COLUMNS = """
pg_am oid:o amname amtype
pg_attrdef oid:o adrelid:o adnum:i adbin
pg_attribute attrelid:o attname atttypid:o attstattarget:i attlen:i attnum:i attndims:i atttypmod:i attbyval:b \
attalign attstorage attcompression attnotnull:b atthasdef:b atthasmissing:b attidentity attgenerated attisdropped:b \
attislocal:b attinhcount:i attcollation:o attacl:t[] attoptions:t[] attfdwoptions:t[]
pg_auth_members roleid:o member:o grantor:o admin_option:b
pg_class oid:o relname relnamespace:o reltype:o reloftype:o relowner:o relam:o relfilenode:o reltablespace:o \
relpages:i reltuples:d relallvisible:i reltoastrelid:o relhasindex:b relisshared:b relpersistence relkind relnatts:i \
relchecks:i relhasrules:b relhastriggers:b relhassubclass:b relrowsecurity:b relforcerowsecurity:b relispopulated:b \
relreplident relispartition:b relrewrite:o relacl:t[] reloptions:t[] relpartbound
pg_collation oid:o collname collnamespace:o collowner:o collprovider collisdeterministic:b collencoding:i
pg_constraint oid:o conname connamespace:o contype condeferrable:b condeferred:b convalidated:b conrelid:o \
contypid:o conindid:o conparentid:o confrelid:o confupdtype confdeltype confmatchtype conislocal:b coninhcount:i \
connoinherit:b conkey:i[] confkey:i[] conbin
pg_database oid:o datname datdba:o encoding:i datlocprovider datistemplate:b datallowconn:b datconnlimit:i \
dattablespace:o datcollate datctype daticulocale datcollversion datacl:t[]
pg_depend classid:o objid:o objsubid:i refclassid:o refobjid:o refobjsubid:i deptype
pg_description objoid:o classoid:o objsubid:i description
pg_enum oid:o enumtypid:o enumsortorder:d enumlabel
pg_extension oid:o extname extowner:o extnamespace:o extrelocatable:b extversion
pg_foreign_server oid:o srvname srvowner:o srvfdw:o
pg_foreign_table ftrelid:o ftserver:o ftoptions:t[]
pg_index indexrelid:o indrelid:o indnatts:i indnkeyatts:i indisunique:b indnullsnotdistinct:b indisprimary:b \
indisexclusion:b indimmediate:b indisclustered:b indisvalid:b indisready:b indislive:b indisreplident:b indkey:i[] \
indcollation:i[] indclass:i[] indoption:i[] indexprs indpred
pg_indexes schemaname tablename indexname tablespace indexdef
pg_inherits inhrelid:o inhparent:o inhseqno:i inhdetachpending:b
pg_matviews schemaname matviewname matviewowner
pg_namespace oid:o nspname nspowner:o nspacl:t[]
pg_opclass oid:o opcmethod:o opcname opcnamespace:o opcdefault:b
pg_policy oid:o polname polrelid:o polcmd polpermissive:b polroles:i[] polqual polwithcheck
pg_proc oid:o proname pronamespace:o prokind prorettype:o proretset:b provolatile proacl:t[]
pg_publication oid:o pubname puballtables:b
pg_publication_namespace oid:o pnpubid:o pnnspid:o
pg_publication_rel oid:o prpubid:o prrelid:o prqual prattrs:i[]
pg_range rngtypid:o rngsubtype:o
pg_rewrite oid:o rulename ev_class:o ev_type ev_enabled
pg_roles rolname rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b rolreplication:b rolconnlimit:i \
rolvaliduntil rolbypassrls:b oid:o
pg_sequence seqrelid:o seqtypid:o seqstart:i seqincrement:i seqmax:i seqmin:i seqcache:i seqcycle:b
pg_settings name setting unit
pg_stat_user_tables relid:o schemaname relname n_live_tup:i n_dead_tup:i
pg_statistic_ext oid:o stxrelid:o stxname stxnamespace:o stxowner:o stxstattarget:i stxkeys:i[] stxkind:t[]
pg_stats schemaname tablename attname null_frac:d avg_width:i n_distinct:d
pg_tables schemaname tablename tableowner tablespace hasindexes:b hasrules:b hastriggers:b rowsecurity:b
pg_tablespace oid:o spcname spcowner:o
pg_trigger oid:o tgrelid:o tgname tgenabled tgisinternal:b tgparentid:o
pg_type oid:o typname typnamespace:o typowner:o typlen:i typbyval:b typtype typcategory typisdefined:b typdelim \
typrelid:o typelem:o typarray:o typinput typnotnull:b typbasetype:o typtypmod:i typndims:i typcollation:o typdefault
pg_user usename usesysid:o usecreatedb:b usesuper:b
pg_views schemaname viewname viewowner definition
pg_stat_activity datname pid:i usename application_name state query
information_schema.tables table_catalog table_schema table_name table_type is_insertable_into is_typed
information_schema.columns table_catalog table_schema table_name column_name ordinal_position:i column_default \
is_nullable data_type character_maximum_length:i numeric_precision:i numeric_precision_radix:i numeric_scale:i \
datetime_precision:i udt_catalog udt_schema udt_name is_identity is_generated is_updatable
information_schema.schemata catalog_name schema_name schema_owner
information_schema.views table_catalog table_schema table_name view_definition
information_schema.table_constraints constraint_catalog constraint_schema constraint_name table_catalog table_schema \
table_name constraint_type
information_schema.key_column_usage constraint_catalog constraint_schema constraint_name table_catalog table_schema \
table_name column_name ordinal_position:i position_in_unique_constraint:i
information_schema.referential_constraints constraint_catalog constraint_schema constraint_name \
unique_constraint_schema unique_constraint_name update_rule delete_rule
information_schema.constraint_column_usage table_catalog table_schema table_name column_name constraint_schema \
constraint_name
"""
"""The tables and columns that exist, with types: o and i are whole numbers, b truth values, d numbers, else texts."""
_ARROW = {"o": pa.int64(), "i": pa.int64(), "b": pa.bool_(), "d": pa.float64(), "t": pa.string(),
          "i[]": pa.list_(pa.int64()), "t[]": pa.list_(pa.string())}  # fmt: skip
_DEFAULTS: dict[str, Any] = {"b": False, "i": 0, "o": 0, "d": -1.0}

_SETTINGS = {"max_index_keys": "32", "server_version": SERVER_VERSION, "server_version_num": "150000",
             "server_encoding": "UTF8", "search_path": SCHEMA}  # fmt: skip


def _shapes() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for line in _COLUMNS.strip().splitlines():
        name, *columns = line.split()
        pairs = [column.partition(":") for column in columns]
        yield name, [(column, kind or "t") for column, _, kind in pairs]


SHAPES = dict(_shapes())
EMPTY = {name for name in SHAPES if name.rpartition(".")[2] in {
    "pg_attrdef", "pg_auth_members", "pg_collation", "pg_constraint", "pg_depend", "pg_enum", "pg_extension",
    "pg_foreign_server", "pg_foreign_table", "pg_index", "pg_indexes", "pg_inherits", "pg_matviews", "pg_opclass",
    "pg_policy", "pg_proc", "pg_publication", "pg_publication_namespace", "pg_publication_rel", "pg_range",
    "pg_rewrite", "pg_sequence", "pg_statistic_ext", "pg_stats", "pg_stat_user_tables", "pg_trigger", "pg_views",
    "views", "table_constraints", "key_column_usage", "referential_constraints",
    "constraint_column_usage"}}  # fmt: skip
"""Tables without a row, whatever is declared."""


def catalog_tables(described: Mapping[str, Any]) -> dict[str, pa.Table]:
    """Return the tables of the catalog, by their names, for what a query service tells of its tables."""
    rows = {name: pa.Table.from_pylist([], _schema(shape)) for name, shape in SHAPES.items()}
    for name, lines in _rows(described).items():
        rows[name] = pa.Table.from_pylist([_line(name, line) for line in lines], _schema(SHAPES[name]))
    tables = {stored_name(name): table for name, table in rows.items()}
    return tables | {TYPE_TABLE: pa.Table.from_pylist(list(_formats()))}


def stored_name(name: str) -> str:
    """Return the name under which the sandbox holds a table."""
    return name.replace("information_schema.", "information_schema_")


def _schema(shape: Sequence[tuple[str, str]]) -> pa.Schema:
    return pa.schema([(name, _ARROW[kind]) for name, kind in shape])


def _line(name: str, line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with the constants that stand for all that is not declared."""
    unknown = set(line) - {column for column, _ in SHAPES[name]}
    if unknown:
        raise InvalidParameter(f"{name} has no column {min(unknown)}.")
    standard = name.startswith("information_schema.")  # where what does not apply is NULL
    defaults = {column: None if standard else _DEFAULTS.get(kind) for column, kind in SHAPES[name]}
    return {**defaults, **line}


def _formats() -> Iterator[dict[str, Any]]:
    for kind, oid in TYPE_OIDS.items():
        yield {"oid": oid, "formatted": _TYPE_NAMES[kind]}
    for name, oid, _ in _OTHER_TYPES:
        yield {"oid": oid, "formatted": name}


def _rows(described: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the catalog's tables: constants, and what is declared."""
    rows: dict[str, list[dict[str, Any]]] = {
        "pg_namespace": [{"oid": oid, "nspname": name, "nspowner": _OWNER} for name, oid in _NAMESPACES.items()],
        "pg_roles": [{"rolname": "incrowd", "oid": _OWNER, "rolcanlogin": True, "rolconnlimit": -1}],
        "pg_tablespace": [{"oid": _TABLESPACE, "spcname": "pg_default", "spcowner": _OWNER}],
        "pg_am": [{"oid": 2, "amname": "heap", "amtype": "t"}],
        "pg_settings": [{"name": name, "setting": value} for name, value in _SETTINGS.items()],
        "pg_database": [{"oid": 5, "datname": DATABASE, "datdba": _OWNER, "encoding": 6, "datallowconn": True,
                         "datcollate": "C", "datctype": "C", "datlocprovider": "c", "datconnlimit": -1,
                         "dattablespace": _TABLESPACE}],
        "pg_type": list(_types()),
        "pg_class": [_class(oid, name, _NAMESPACES["pg_catalog"]) for name, oid in _CLASSES.items()],
        "information_schema.schemata": [
            {"catalog_name": DATABASE, "schema_name": name, "schema_owner": "incrowd"} for name in _NAMESPACES],
    }  # fmt: skip
    for name in (
        "pg_attribute",
        "pg_description",
        "pg_tables",
        "information_schema.tables",
        "information_schema.columns",
    ):
        rows[name] = []
    for oid, table in enumerate(described["tables"], start=_FIRST):
        _add_table(rows, oid, table)
    return rows


def _types() -> Iterator[dict[str, Any]]:
    common = {"typnamespace": 11, "typowner": _OWNER, "typtype": "b", "typisdefined": True, "typdelim": ",",
              "typtypmod": -1}  # fmt: skip
    for kind, oid in TYPE_OIDS.items():
        yield {**common, "oid": oid, "typname": _INTERNAL[kind], "typlen": _SIZES[kind]}
    for name, oid, size in _OTHER_TYPES:
        yield {**common, "oid": oid, "typname": name, "typlen": size}


def _class(oid: int, name: str, namespace: int) -> dict[str, Any]:
    constants = {"relowner": _OWNER, "relam": 2, "relpersistence": "p", "relkind": "r", "relispopulated": True,
                 "relreplident": "n", "reltuples": -1.0}  # fmt: skip
    return {"oid": oid, "relname": name, "relnamespace": namespace, **constants}


def _add_table(rows: dict[str, list[dict[str, Any]]], oid: int, table: Mapping[str, Any]) -> None:
    name, columns = table["name"], all_columns(table)
    rows["pg_class"].append(_class(oid, name, _NAMESPACES[SCHEMA]) | {"relnatts": len(columns)})
    rows["pg_tables"].append({"schemaname": SCHEMA, "tablename": name, "tableowner": "incrowd"})
    place = {"table_catalog": DATABASE, "table_schema": SCHEMA, "table_name": name}
    rows["information_schema.tables"].append(
        {**place, "table_type": "BASE TABLE", "is_insertable_into": "NO", "is_typed": "NO"}
    )
    rows["pg_description"].append(
        {"objoid": oid, "classoid": _CLASSES["pg_class"], "objsubid": 0, "description": _comment(table)}
    )
    for number, column in enumerate(columns, start=1):
        kind = column["type"] if column["type"] in TYPE_OIDS else "text"
        rows["pg_attribute"].append(
            {"attrelid": oid, "attname": column["name"], "atttypid": TYPE_OIDS[kind], "attlen": _SIZES[kind],
             "attnum": number, "atttypmod": -1, "attislocal": True, "attidentity": "", "attgenerated": "",
             "attstorage": "p", "attcompression": "", "attstattarget": -1})  # fmt: skip
        rows["information_schema.columns"].append(
            {**place, "column_name": column["name"], "ordinal_position": number, "is_nullable": "YES",
             "data_type": _TYPE_NAMES[kind], "udt_catalog": DATABASE, "udt_schema": "pg_catalog",
             "udt_name": _INTERNAL[kind], "is_identity": "NO", "is_generated": "NEVER",
             "is_updatable": "NO", **_PRECISIONS.get(kind, {})})  # fmt: skip
        note = PERSON_NOTE if column["name"] == table.get("person") else ""
        if note := note or _domain(column):
            rows["pg_description"].append(
                {"objoid": oid, "classoid": _CLASSES["pg_class"], "objsubid": number, "description": note}
            )


def _comment(table: Mapping[str, Any]) -> str:
    unit = table.get("unit")
    return "public" if unit is None else f"private: every statement is charged, for {unit}"


def _domain(column: Mapping[str, Any]) -> str:
    if column.get("values"):
        more = f", and {column['more']} more" if column.get("more") else ""
        return "one of " + ", ".join(map(str, column["values"])) + more
    low, high = column.get("bounds") or (None, None)
    return "" if low is None and high is None else f"{low} to {high}"
