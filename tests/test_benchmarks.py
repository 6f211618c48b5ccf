"""The benchmarks run, with as little work as there is, and their figures are in one JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    "names",
    [
        ["looks", "eager", "tf_programs"],
        pytest.param(
            [x.stem for x in (ROOT / "tests/benchmarks").glob("[!_]*.py") if x.stem != "measuring"],
            marks=pytest.mark.slow,
        ),
    ],
    ids=["some", "all"],
)
def test_they_run(names: list[str], run_python: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    command = ("-m", "tests.benchmarks", "--smoke", "--json", str(path), "--only", ",".join(names))
    done = run_python(*command, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads(path.read_text())
    assert {"machine", "date", "versions"} == found.pop("about").keys()
    assert set(found) == set(names)
    for jobs in found.values():
        assert jobs
        assert all(jobs.values())
        assert all(f"\n{job}\n" in done.stdout for job in jobs)


def test_an_unknown_name_is_refused(run_python: Callable[..., Any]) -> None:
    done = run_python("-m", "tests.benchmarks", "--only", "dispach")
    assert done.returncode == 2
    assert "there is no dispach: there are dispatch, looks" in done.stderr


def test_the_table_of_the_readme_is_that_of_the_figures(run_python: Callable[..., Any]) -> None:
    code = """
import sys
sys.path.append(sys.argv[1])
import peers
rows = [{"variables": n, "way": "jaxvars", "median ratio": 1.04} for n in peers.COUNTS]
row = {"way": "jaxvars", **dict.fromkeys(peers.ROWS.values(), "seen")}
print(peers.readme({"times": rows, "semantics": [row]}))
"""
    done = run_python("-c", code, str(ROOT / "tests/benchmarks"))
    printed = done.stdout.splitlines()
    labels = [line.split("|")[1] for line in printed]
    there = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    start = there.index(printed[0])
    assert labels == [line.split("|")[1] for line in there[start : start + len(labels)]]
    measured = [line.split(" | ")[1:3] for line in printed if " * |" in line]
    assert measured == [["1.0", "not measured"]] * 4 + [["seen", "not measured"]] * 4
