"""Templates: compiled once and then read, as Python's own modules are."""

from __future__ import annotations

from hashlib import sha256
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import BytecodeCache

from incrowd.store.compiled import compiled_place, read_compiled, write_compiled

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.bccache import Bucket

_OPTIONS = ("autoescape", "trim_blocks", "lstrip_blocks", "keep_trailing_newline", "finalize", "optimized")
"""Options of an environment that compiled code depends on, of those that are used here."""


class TemplateCache(BytecodeCache):
    """Keeps the compiled templates of a module that renders them in an environment.

    With other options, or another version of Jinja, a template is compiled anew.
    """

    def __init__(self, module: str, environment: Environment) -> None:
        options = (getattr(environment, name) for name in _OPTIONS)
        names = [getattr(option, "__qualname__", repr(option)) for option in options]
        self._module, self._made_by = module, f"{version('jinja2')} {names}\n"

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """Return the name of a template: its folder is that of the module."""
        return name

    def get_source_checksum(self, source: str) -> str:
        """Return what must be the same for compiled code to be used."""
        return sha256((self._made_by + source).encode()).hexdigest()

    def load_bytecode(self, bucket: Bucket) -> None:
        content = read_compiled(self._place(bucket))
        if content is not None:
            bucket.load_bytecode(BytesIO(content))

    def dump_bytecode(self, bucket: Bucket) -> None:
        write_compiled(self._place(bucket), bucket.bytecode_to_string())

    def _place(self, bucket: Bucket) -> Path:
        return compiled_place(self._module, bucket.key)
