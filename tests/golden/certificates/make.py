"""Make the golden release of the current version; until the format is frozen, anew with each change of the format.

python -m tests.golden.certificates.make
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from unittest.mock import patch

from incrowd.core.certificate import VERSION
from incrowd.workflows.release import certify
from tests.released import key_pair, release_into

FOLDER = Path(__file__).parent


def make() -> None:
    """Release people under a signature and keep what was published, and the public key."""
    target = FOLDER / f"version-{VERSION}"
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        keys = key_pair(Path(scratch))
        with patch.object(certify, "__version__", "0.0.0+golden"):  # other tools draw other reports
            folder = release_into(Path(scratch) / "release", key=keys.private)
        shutil.copytree(folder.out, target)
        shutil.copy(keys.public, target / "key.pub")


if __name__ == "__main__":
    make()
