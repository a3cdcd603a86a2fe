"""A method of another distribution: built, installed and run, and refused clearly where nobody named it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own-method"
NAME = "noisy-total-for-incrowd"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the example's wheel and install it into a folder of its own."""
    folder = tmp_path_factory.mktemp("distribution")
    quiet = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    build = [sys.executable, "-m", "pip", "wheel", *quiet, "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([*build, str(EXAMPLE)], check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *quiet, "--target", str(folder / "site"), wheel], check=True
    )
    return folder / "site"


class Place:
    """A folder with rows and the example's policy, in which commands run with or without the package."""

    def __init__(self, folder: Path, installed: Path) -> None:
        self.folder, self.installed = folder, installed
        (folder / "rows.csv").write_text("age\n" + "\n".join(str(20 + number % 50) for number in range(1000)) + "\n")
        (folder / "policy.yaml").write_text((EXAMPLE / "policy.yaml").read_text())

    def run(self, *arguments: str, with_package: bool = True) -> subprocess.CompletedProcess[str]:
        path = [str(self.installed)] if with_package else []
        path += [entry for entry in sys.path if entry]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "COLUMNS": "200"}
        command = [sys.executable, "-m", "incrowd", *arguments]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)

    def release(self) -> dict[str, object]:
        done = self.run("release", "rows.csv", "--policy", "policy.yaml", "--out", "out")
        assert done.returncode == 0, done.stderr
        plain: dict[str, object] = json.loads((self.folder / "out" / "certificate.json").read_text())
        return plain


@pytest.fixture
def place(tmp_path: Path, installed: Path) -> Place:
    return Place(tmp_path, installed)


def test_it_is_released_and_verified_by_those_who_name_it(place: Place) -> None:
    certificate = place.release()
    (code,) = [step for step in certificate["steps"] if step["step"] == "outside code"]  # type: ignore[attr-defined]
    assert (code["distribution"], code["version"], len(code["digest"])) == (NAME, "1.0", 64)
    first = certificate["claims"][0]["preconditions"][0]  # type: ignore[index]
    assert first == {"term": "outside-code", "status": "assumed"}
    assert f"Code of another distribution: {NAME} 1.0" in (place.folder / "out" / "report.html").read_text()
    done = place.run("verify", "out", "--distribution", NAME, "--policy", "policy.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "it depends on code that incrowd did not check" in done.stdout


def test_a_file_to_verify_does_not_make_it_run(place: Place) -> None:
    place.release()
    for with_package in (True, False):
        done = place.run("verify", "out", with_package=with_package)
        assert done.returncode == 1
        assert f"depends on the code of the distribution '{NAME}'" in done.stderr
        assert f"--distribution {NAME}" in done.stderr


def test_where_it_is_not_installed_that_is_said(place: Place) -> None:
    place.release()
    for arguments in (("verify", "out", "--distribution", NAME), ("plan", "--policy", "policy.yaml")):
        done = place.run(*arguments, with_package=False)
        assert done.returncode == 2
        assert f"the distribution '{NAME}' is not installed here" in done.stderr


def test_other_code_of_the_same_name_does_not_verify(place: Place, tmp_path_factory: pytest.TempPathFactory) -> None:
    place.release()
    changed = tmp_path_factory.mktemp("changed")
    subprocess.run(["cp", "-r", f"{place.installed}/.", str(changed)], check=True)
    (changed / "noisy_rows.py").write_text((changed / "noisy_rows.py").read_text() + "\n# another line\n")
    done = Place(place.folder, changed).run("verify", "out", "--distribution", NAME)
    assert done.returncode == 1
    assert "the installed code is not the code that the certificate names" in done.stdout


def test_a_certificate_that_hides_whose_code_it_is_does_not_verify(place: Place) -> None:
    certificate = place.release()
    steps = [step for step in certificate["steps"] if step["step"] != "outside code"]  # type: ignore[attr-defined]
    (place.folder / "out" / "certificate.json").write_text(json.dumps({**certificate, "steps": steps}))
    done = place.run("verify", "out", "--distribution", NAME)
    assert done.returncode == 1
    assert "the installed code is not the code that the certificate names" in done.stdout


def test_a_distribution_cannot_take_a_name_of_ours_nor_be_one_of_several(place: Place) -> None:
    entries = next(place.installed.glob("*.dist-info")) / "entry_points.txt"
    text = entries.read_text()
    try:
        entries.write_text(text.replace("noisy-rows =", "safe ="))
        done = place.run("plan", "--policy", "policy.yaml")
        assert done.returncode == 2
        assert "cannot call a method 'safe': incrowd has one of this name" in done.stderr
    finally:
        entries.write_text(text)
    head, _, method = (place.folder / "policy.yaml").read_text().partition("release:\n  ")
    (place.folder / "policy.yaml").write_text(f"{head}release:\n  - " + method.replace("\n  ", "\n    "))
    done = place.run("plan", "--policy", "policy.yaml")
    assert done.returncode == 2
    assert "a method of another distribution cannot be part of a list" in done.stderr
