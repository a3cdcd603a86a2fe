"""What `scripts/house` counts, on a small package whose figures can be counted by eye."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "house"

FILES = {
    "pyproject.toml": '[project]\n[project.scripts]\nshop = "shop.start:main"\n',
    "src/shop/__init__.py": '"""Shop."""\n\nfrom shop.till.till import Till\n\n__all__ = ["Till"]\n',
    "src/shop/start.py": "def main() -> None:\n    from shop import Till\n\n    Till()\n",
    "src/shop/till/__init__.py": '"""Till."""\n',
    "src/shop/till/till.py": "from shop.till import coins\n\n\nclass Till:\n    coins = coins.Coins()\n",
    "src/shop/till/coins.py": 'class Coins:\n    def __len__(self) -> int:\n        """Count."""\n        return 0\n',
    "src/shop/paper.py": 'class Coins:\n    other = "shop.till.coins"\n',
}


def printed(tmp_path: Path, *options: str) -> dict[str, str]:
    for name, text in FILES.items():
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    command = [sys.executable, str(SCRIPT), str(tmp_path / "src" / "shop"), *options]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = (line.rsplit("  ", 1) for line in output.splitlines() if "  " in line)
    return {name.strip(): figure for name, figure in rows}


def test_a_small_package_has_the_figures_counted_by_eye(tmp_path: Path) -> None:
    figures = printed(tmp_path)
    assert figures["files"] == "6"
    assert figures["lines"] == "21"
    assert figures["code lines"] == "13"
    assert figures["function length, longest"] == "4"
    assert figures["function length, median"] == "2", "a docstring is no line of a function"
    assert figures["import lines"] == "3 of 13 (23.1%)"
    assert figures["class names defined more than once"] == "1"


def test_a_name_that_a_package_passes_on_counts_for_its_file_and_a_registered_name_is_an_import(tmp_path: Path) -> None:
    figures = printed(tmp_path)
    assert figures["modules with one importer"] == "1 of 3 (33.3%)", "till, by start; coins has till and paper"
    assert figures["modules with no importer"] == "1 of 3 (33.3%)", "paper; the entry point is not counted"
    assert figures["files of at most 80 lines, one importer beside"] == "0"
