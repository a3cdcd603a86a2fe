"""Packaging: this package as one file that workers can import."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

from incrowd import errors

_EPOCH = (1980, 1, 1, 0, 0, 0)


def packed_code(folder: Path) -> Path:
    """Write the modules of this package into an archive named after their content, and return its path.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = packed_code(Path(folder))
    ...     path.suffix, "incrowd/errors.py" in zipfile.ZipFile(path).namelist()
    ('.zip', True)
    """
    root = Path(errors.__file__).parent
    modules = {f"incrowd/{path.relative_to(root).as_posix()}": path.read_bytes() for path in sorted(root.rglob("*.py"))}
    digest = hashlib.sha256()
    for name, content in modules.items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    target = folder / f"incrowd-{digest.hexdigest()[:16]}.zip"
    if not target.exists():
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in modules.items():
                archive.writestr(zipfile.ZipInfo(name, _EPOCH), content)
    return target
