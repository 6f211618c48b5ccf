"""Environments in which jaxvars cannot run: what `import jaxvars` and the doctor say there."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import jax
import pytest

from jaxvars import requirements

ROOT = Path(__file__).resolve().parent.parent
RunPython = Callable[..., subprocess.CompletedProcess[str]]
COMMAND = '-m pip install --upgrade "jax>=0.10.2,<0.13" "jaxlib>=0.10.2,<0.13" "numpy>=2.2,<3"'
WRONG = {
    "jax is too old": ({"jax": "0.9.2", "jaxlib": "0.9.2"}, "jax 0.9.2 (needed: >=0.10.2,<0.13)"),
    "jax is too new": ({"jax": "0.13.0"}, "jax 0.13.0 (needed: >=0.10.2,<0.13)"),
    "jaxlib is too old": ({"jaxlib": "0.10.0"}, "jaxlib 0.10.0 (needed: >=0.10.2,<0.13)"),
    "jaxlib is not jax's": ({"jax": "0.11.0", "jaxlib": "0.10.2"}, "jaxlib 0.10.2 (needed: 0.11.0"),
    "NumPy 1": ({"numpy": "1.26.4"}, "numpy 1.26.4 (needed: >=2.2,<3)"),
}


def environment(folder: Path, versions: dict[str, str]) -> str:
    """Make an environment of these versions, in which `import jax` fails like JAX."""
    for name, version in versions.items():
        info = folder / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    imported = "jax" in versions and "jaxlib" not in versions
    text = f"__version__ = {versions['jax']!r}" if imported else "raise RuntimeError('jaxlib ...')"
    (folder / "jax.py").write_text(text)
    return f"{folder}:{ROOT}"


@pytest.mark.parametrize("name", WRONG)
def test_wrong_versions_are_named_with_the_command(
    name: str, run_python: RunPython, tmp_path: Path
) -> None:
    versions, message = WRONG[name]
    path = environment(tmp_path, versions)
    done = run_python("-c", "import jaxvars", PYTHONPATH=path)
    assert f"\n    {message}" in done.stderr
    assert done.stderr.endswith(f"Run:\n    {sys.executable} {COMMAND}\n")
    assert done.stderr.count("Traceback") == 1
    told = run_python("-m", "jaxvars", "doctor", PYTHONPATH=path)
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr == done.stderr.partition("ImportError: ")[2]


def test_without_jax_it_is_the_same(run_python: RunPython) -> None:
    done = run_python("-S", "-m", "jaxvars", "doctor")  # without installed packages
    assert done.stderr.startswith(f"jaxvars cannot run with what {sys.executable} has:\n")
    assert "\n    jax not installed (needed: >=0.10.2,<0.13)\n" in done.stderr
    assert COMMAND in done.stderr


def test_the_command_keeps_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"jax": "0.9.2", "jax-cuda12-plugin": "0.9.2"}
    missing = requirements.MISSING
    monkeypatch.setattr(requirements, "installed", lambda name: versions.get(name, missing))
    monkeypatch.setattr(jax, "__version__", "0.9.2")
    with pytest.raises(ImportError, match=r'"jax\[cuda12\]>=0.10.2,<0.13" "jaxlib'):
        requirements.check()


def test_another_failure_of_jax_is_shown_as_it_is(run_python: RunPython, tmp_path: Path) -> None:
    path = environment(tmp_path, {"jax": "0.12.1", "jaxlib": "0.12.0"})
    (tmp_path / "jax.py").write_text("raise RuntimeError('the driver is broken')")
    done = run_python("-c", "import jaxvars", PYTHONPATH=path)
    assert done.stderr.endswith("RuntimeError: the driver is broken\n")


def test_an_older_python_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 4, "final", 0))
    with pytest.raises(ImportError, match=r"needs Python 3.11 or newer, and .* is Python 3.10"):
        requirements.check()


@pytest.mark.parametrize("file", ["__init__.py", "requirements.py"])
def test_an_older_python_can_read_what_refuses_it(file: str) -> None:
    text = (ROOT / "jaxvars" / file).read_text()
    ast.parse(text, feature_version=(3, 7))


def test_the_ranges_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["dependencies"] == [*map("".join, requirements.RANGES.items())]
    assert project["requires-python"] == ">={}.{}".format(*requirements.PYTHON)


@pytest.mark.parametrize(("version", "fits"), [
    ("0.10.1", False), ("0.10.2", True), ("0.12", True), ("0.12.3.dev4+g1", True),
    ("0.13.0.dev2026", False), ("0.13", False), ("1.0", False), (requirements.MISSING, False),
])  # fmt: skip
def test_a_version_fits_or_does_not(version: str, fits: bool) -> None:
    assert requirements.fits("jax", version) == fits


def test_the_version_is_printed(run_python: RunPython) -> None:
    done = run_python("-m", "jaxvars", "--version")
    assert done.stdout == f"jaxvars {requirements.installed('jaxvars')}\n"
