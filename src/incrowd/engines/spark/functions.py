"""Functions: those of classic Spark or those of Spark Connect, after the frame they are used on."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def is_remote(thing: DataFrame | SparkSession) -> bool:
    """Return whether a session or a frame talks to a Spark Connect server."""
    return type(thing).__module__.startswith("pyspark.sql.connect")


def functions_of(frame: DataFrame) -> Any:
    """Return the functions that make columns for a frame: a process may use both kinds of Spark at once."""
    return import_module("pyspark.sql.connect.functions" if is_remote(frame) else "pyspark.sql.functions")


def window_of(frame: DataFrame) -> Any:
    """Return the class that describes windows over a frame."""
    return import_module("pyspark.sql.connect.window" if is_remote(frame) else "pyspark.sql.window").Window


def column(frame: DataFrame, name: str) -> Column:
    """Return a column by its exact name, whatever characters are in it."""
    quoted = name.replace("`", "``")
    found: Column = functions_of(frame).col(f"`{quoted}`")
    return found
