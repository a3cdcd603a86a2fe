"""Digest on a cluster: a hash of the rows as a multiset, whatever their order and wherever they lie."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from incrowd.engines.spark.functions import column, functions_of
from incrowd.engines.spark.task import collected

if TYPE_CHECKING:
    from pyspark.sql import Column

    from incrowd.engines.spark.rows import SparkRows

_WORDS = 8
_HEX = 8


def content_digest(rows: SparkRows) -> bytes:
    """Return 32 bytes for the names, types and rows of a source; of a text file, for its bytes.

    Each row is hashed by SHA-256 where it lies, and the eight 32-bit words of the hashes are summed as whole numbers,
    which is a hash of the multiset of rows.  So the digest does not depend on how Spark cuts or orders the rows.  It is
    another one than the local engine makes of the same files, which hashes their bytes.
    """
    content = rows.origin.content
    functions = functions_of(content)
    row = functions.to_json(functions.struct(*(column(content, name) for name in content.columns)))
    hashed = content.select(functions.sha2(row, 256).alias("hash"))
    sums = [functions.sum(_word(functions, place)).alias(f"word{place}") for place in range(_WORDS)]
    found = collected(hashed.agg(functions.count("*").alias("rows"), *sums)).to_pylist()[0]
    kinds = [(each.name, each.dataType.simpleString()) for each in content.schema.fields]
    stated = repr((kinds, sorted(found.items())))
    return hashlib.sha256(stated.encode("utf-8", "surrogatepass")).digest()


def _word(functions: Any, place: int) -> Column:
    word: Column = functions.conv(functions.substring("hash", 1 + _HEX * place, _HEX), 16, 10).cast("bigint")
    return word
