"""Type checkers find no error in right programs, and each mistake in wrong ones.

They see the package as users do: from outside, by its `py.typed`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from write_stubs import NAMESPACES, file_of, stub

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "typing_programs"
PROGRAMS = sorted(FOLDER.glob("*.py"))
CHECKERS = {
    "basedpyright": ["basedpyright", "--level", "error", "--pythonpath", sys.executable],
    "mypy": [sys.executable, "-m", "mypy", "--cache-dir", "cache"],
}
ERROR = re.compile(r"(\w+\.py):(\d+)(?::\d+ -|:) error")


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": paths, "JAX_PLATFORMS": "cpu"}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_type_checker_finds_all_mistakes_and_nothing_else(checker, tmp_path):
    pytest.importorskip(checker)
    for program in PROGRAMS:
        shutil.copy(program, tmp_path)
    settings = '{"typeCheckingMode": "standard"}'
    (tmp_path / "pyrightconfig.json").write_text(settings, encoding="utf-8")
    said = run([*CHECKERS[checker], *(program.name for program in PROGRAMS)], tmp_path).stdout

    found = {(name, int(line)) for name, line in ERROR.findall(said)}
    assert found == {
        (program.name, number)
        for program in PROGRAMS
        for number, line in enumerate(program.read_text("utf-8").splitlines(), 1)
        if "  # wrong: " in line
    }, said


@pytest.mark.parametrize("program", ["right.py", "right_tf.py"])
def test_a_right_program_runs(program, tmp_path):
    done = run([sys.executable, str(FOLDER / program)], tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_a_stub_is_that_of_the_operations(namespace):
    written = file_of(namespace).read_text("utf-8")
    assert written == stub(namespace), "run: python tests/write_stubs.py"
