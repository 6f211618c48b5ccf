"""The reference is built without a warning, has every public name, and its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from datetime import date
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest
from test_public_api import PUBLIC

import jaxvars as jv
from jaxvars import errors

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("tensorflow", "flax_and_equinox", "control_flow", "training", "how_it_works", "limits")

_LINK = re.compile(r'<(?:a|img|link|script)[^>]* (?:href|src)="?([^"\s>]+)')


def test_the_changelog_begins_with_the_version_and_each_has_a_date() -> None:
    text = (ROOT / "jaxvars/CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)", text, flags=re.MULTILINE)
    found = [re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d\d-\d\d)", x) for x in headings]
    assert None not in found, headings
    versions = [tuple(map(int, x.groups()[:3])) for x in found]
    dates = [date.fromisoformat(x[4]) for x in found]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert ".".join(map(str, versions[0])) == project["version"]
    assert (versions, dates) == (sorted({*versions}, reverse=True), sorted(dates, reverse=True))


def test_the_reference(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, ".docs/build.py", "--site-dir", tmp_path],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr  # strict: a warning is an error
    assert "WARNING" not in built.stderr
    pages = {path: path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.html")}
    books = [path.relative_to(ROOT / "notebooks") for path in ROOT.glob("notebooks/**/*.ipynb")]
    assert {tmp_path / f"{name}.html" for name in (*PAGES, "index", "NAMES")} <= pages.keys()
    assert {tmp_path / path.with_suffix(".html") for path in books} <= pages.keys()
    assert (tmp_path / "search/search_index.js").exists(), "by which a page from a folder searches"
    foreign = {src for html in pages.values() for src in re.findall(r'src="?(http[^" >]*)', html)}
    assert foreign == {"https://unpkg.com/iframe-worker/shim"}  # the theme's: a page that searches
    anchors = {path: anchors_of(html) for path, html in pages.items()}
    shown = set().union(*anchors.values())
    assert {f"jaxvars.{name}" for name in PUBLIC} - shown == set()
    assert {f"jaxvars.errors.{name}" for name in errors.__all__} - shown == set()
    assert sorted(dead_links(tmp_path, pages, anchors)) == []


def anchors_of(html: str) -> set[str]:
    return {unescape(name) for name in re.findall(r' id="?([^"\s>]+)', html)}


def dead_links(
    site: Path, pages: dict[Path, str], anchors: dict[Path, set[str]]
) -> set[tuple[str, str]]:
    """The pages with links to a file or an anchor that is not there."""
    dead = set()
    for page, html in pages.items():
        for link in map(unescape, _LINK.findall(html)):
            file, _, anchor = link.partition("#")
            if re.match(r"[\w.]+:", link) or page.name == "404.html":
                continue
            target = (page.parent / unquote(file)).resolve() if file else page
            known = anchors.get(target, {unquote(anchor)})
            if not target.exists() or (anchor and unquote(anchor) not in known):
                dead.add((page.relative_to(site).as_posix(), link))
    return dead


def test_a_dead_link_is_seen(tmp_path: Path) -> None:
    page, html = tmp_path / "a.html", '<a href="a.html#x"><a href="b.html"><h1 id="y"><a href="#y">'
    page.write_text(html)
    found = dead_links(tmp_path, {page: html}, {page: anchors_of(html)})
    assert found == {("a.html", "a.html#x"), ("a.html", "b.html")}


def test_help_lists_every_name() -> None:
    assert set(jv.__all__) - set(re.findall(r"\w+", jv.__doc__ or "")) == set()


@pytest.mark.parametrize("page", ["README.md", *(f"notebooks/{name}.md" for name in PAGES)])
def test_names_in_pages_exist(page: str) -> None:
    """Of `jv.a.b` in a page or a table of words: there is such a name."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in set(re.findall(r"\bjv((?:\.\w+)+)", text)):
        found = jv
        for part in name[1:].split("."):
            found = getattr(found, part)
