"""Build the reference: `python .docs/build.py`, by mkdocs.yml beside this file.

Each name of `jv` has a page, each namespace has one for all of its names; the groups are those of
`help(jv)`. The README and other files of the repository are pages, too; a link from a page to what
is not in the reference is shown as the path of the file.
"""

from __future__ import annotations

import inspect
import json
import os
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

os.environ.setdefault("JAX_ENABLE_X64", "0")  # jaxvars.tf is imported, and would say something

import jaxvars as jv

ROOT = Path(__file__).resolve().parent.parent
WRITTEN = {
    "index.md": "README.md",
    "NAMES.md": "jaxvars/tf/NAMES.md",
    "CHANGELOG.md": "jaxvars/CHANGELOG.md",
    "CONTRIBUTING.md": ".github/CONTRIBUTING.md",
    "packages.svg": ".github/packages.svg",
    "style.css": ".docs/style.css",
}
"""Files of the repository by what they are called here; those in notebooks/ keep their names."""
NOTEBOOKS = {
    path.relative_to(ROOT / "notebooks").with_suffix(".md").as_posix(): path
    for path in sorted((ROOT / "notebooks").rglob("*.ipynb"))
}
SOURCES = WRITTEN | {uri: str(path.relative_to(ROOT)) for uri, path in NOTEBOOKS.items()}
"""The file of the repository that each page is made of."""
HEADER = "| Name | Summary |\n|---|---|"


# ---------------------------------------------------------------- which pages there are
def groups() -> dict[str, list[str]]:
    """Return the names of `jv` by group, as `help(jv)` lists them."""
    found: dict[str, list[str]] = {}
    for title, listed in re.findall(r"(?m)^(\w[\w ]+?|) {2,}(\w+(?:, \w+)+,?)$", jv.__doc__ or ""):
        title = title or list(found)[-1]
        found.setdefault(title, []).extend(listed.rstrip(",").split(", "))
    return found


def summary(thing: Any) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(thing) or "").split("\n")[0]


def block(path: str, heading: str, level: int, **options: Any) -> str:
    """Return the directive that shows the docstring of a name."""
    given = {"heading": f'"{heading}"', "toc_label": heading, "heading_level": level, **options}
    lines = [f"::: jaxvars.{path}", "    options:", *(f"      {k}: {v}" for k, v in given.items())]
    return "\n".join(lines) + "\n"


def page_of_name(name: str) -> str:
    return block(name, f"jv.{name}", 1, inherited_members="true")


def page_of_namespace(name: str) -> str:
    """Return the page of a namespace: what it is for, a table of its names, and each of them."""
    space, seen = getattr(jv, name), {}
    text = {"members": "[]", "show_root_heading": "false", "show_root_toc_entry": "false"}
    parts = [f"# jv.{name} {{ #jaxvars.{name} }}\n", block(name, name, 1, **text)]
    rows, shown = [HEADER], []
    for public in space.__all__:
        thing = getattr(space, public)
        same = seen.setdefault(id(thing), public)
        what = summary(thing) if same == public else f"The same as `{same}`."
        what = what.replace("|", r"\|")
        rows.append(f"| [`{public}`](#jaxvars.{name}.{same}) | {what} |")
        if same == public:
            options = {"merge_init_into_class": "false"} if name == "errors" else {}
            shown.append(block(f"{name}.{public}", public, 2, **options))
    return "\n".join([*parts, *rows, "", *shown])


def index() -> str:
    """Return the page that lists all names, in groups."""
    lines = ["# Reference", "", "`import jaxvars as jv`"]
    for title, names in groups().items():
        lines += ["", f"## {title}", "", HEADER]
        for name in names:
            lines.append(f"| [`jv.{name}`]({name}.md) | {summary(getattr(jv, name))} |")
    lines.append("| [`jv.tf`](../NAMES.md) | TensorFlow's own names |")
    return "\n".join(lines)


def notebook_page(path: Path) -> str:
    """Return a notebook as Markdown: its cells, and what they have printed and drawn."""
    parts: list[str] = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else fence(source, "python"))
        parts += [shown(output) for output in cell.get("outputs", ())]
    return "\n\n".join(parts)


def shown(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return f'<img alt="" src="data:image/png;base64,{"".join(data["image/png"].split())}">'
    lines = output.get("text") or output.get("traceback") or data.get("text/plain", [])
    text = ("\n" if "traceback" in output else "").join(lines)
    return fence(re.sub(r"\x1b\[[\d;]*m", "", text).rstrip(), "text")


def fence(text: str, language: str) -> str:
    return f"````{language}\n{text}\n````"


def pages() -> dict[str, str]:
    """Return the pages that are made of the code, by their paths."""
    names = [name for listed in groups().values() for name in listed]
    made = {
        n: page_of_namespace if inspect.ismodule(getattr(jv, n)) else page_of_name for n in names
    }
    books = {uri: notebook_page(path) for uri, path in NOTEBOOKS.items()}
    reference = {f"reference/{n}.md": f(n) for n, f in made.items()}
    return {"reference/index.md": index(), **reference, **books}


# ---------------------------------------------------------------- hooks of mkdocs
def on_config(config: MkDocsConfig) -> None:
    parts = [
        {title: [{f"jv.{name}": f"reference/{name}.md"} for name in names]}
        for title, names in groups().items()
    ]
    for entry in config.nav or []:
        if isinstance(entry, dict) and "Reference" in entry:
            entry["Reference"] = ["reference/index.md", *parts]
        if isinstance(entry, dict) and "Notebooks" in entry:
            entry["Notebooks"] = list(NOTEBOOKS)


def on_files(files: Files, config: MkDocsConfig) -> None:
    for uri, path in WRITTEN.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    for uri, content in pages().items():
        files.append(File.generated(config, uri, content=content))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    uri = page.file.src_uri
    if uri.startswith("reference/"):
        return markdown
    source = SOURCES.get(uri, f"notebooks/{uri}")
    markdown = re.sub(r"`(jv\.[\w.]+)`", lambda found: find_link(found[1]) or found[0], markdown)
    return re.sub(
        r"(!?)\[([^\]]+)\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)",
        lambda found: relink(uri, source, files, *found.groups(default="")),
        markdown,
    )


def relink(
    page: str, source: str, files: Files, image: str, text: str, target: str, anchor: str
) -> str:
    """Return a link between files of the repository as one between pages."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    uri = {written: uri for uri, written in SOURCES.items()}.get(
        path, path.removeprefix("notebooks/")
    )
    if files.get_file_from_path(uri) and not uri.endswith(".ipynb"):
        return f"{image}[{text}]({posixpath.relpath(uri, posixpath.dirname(page) or '.')}{anchor})"
    if not (ROOT / path).exists():
        return f"[{text}]({target})"  # for mkdocs to refuse
    return text if path in text else f"{text} (`{path}`)"


# ---------------------------------------------------------------- docstrings
def _say(annotation: Any) -> Any:
    return None if str(annotation) == "Any" else annotation


def _returned(getter: Any) -> str | None:
    return inspect.unwrap(getter).__annotations__.get("return")


_DOCTEST = re.compile(r"(?m)^( *)>>> .*(?:\n\1(?! *$).*)*")
_LEAD = re.compile(r"(?m)^(Raised by:|Fix:|(?:Formula|Source|Differs from \w+):(?= \S))")


class Readable(griffe.Extension):
    """Docstrings are Markdown, with links; no `Any`; a property has the type it returns."""

    def on_attribute_instance(self, *, node: Any, attr: griffe.Attribute, **_: Any) -> None:
        if isinstance(node.obj, property):
            attr.annotation = _say(_returned(node.obj.fget))
        else:
            attr.docstring = None  # that of the value's type

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        for parameter in func.parameters:
            parameter.annotation = _say(parameter.annotation)
        func.returns = _say(func.returns)

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None and not obj.path.startswith("jaxvars.tf."):
            obj.docstring.value = as_markdown(obj.docstring.value, obj.path)


def as_markdown(text: str, path: str) -> str:
    r"""Return a docstring with fences around examples, bold leads, and links.

    >>> print(as_markdown("Of a book.\nFix: read `Variable`.", "jaxvars.core"))
    Of a book.
    <BLANKLINE>
    **Fix:** read [`Variable`][jaxvars.Variable].
    """
    text = re.sub(r"`([\w.]+)`", lambda found: find_link(found[1], path) or found[0], text)
    return _DOCTEST.sub(_fence, _LEAD.sub(r"\n**\1**", text))


def _fence(found: re.Match[str]) -> str:
    return f"{found[1]}```pycon\n{found[0]}\n{found[1]}```"


def find_link(name: str, path: str = "jaxvars") -> str | None:
    """Return a link to a public name, as it is written in the docstring of the object at a path."""
    inside, bare = (*path.split(".")[1:2], "")[0], name.removeprefix("jv.")
    for full in (f"{inside}.{bare}".strip("."), bare):
        is_sure = "." in full or name != bare or bare[0].isupper()
        space, _, last = full.rpartition(".")
        owner = jv if not space else getattr(jv, space, None)
        is_known = "tf" not in (space, last) and last in getattr(owner, "__all__", ())
        if is_sure and is_known and full != path[8:]:
            return f"[`{name}`][jaxvars.{full}]"
    return None


if __name__ == "__main__":
    os.environ["NO_MKDOCS_2_WARNING"] = "1"  # an advertisement of mkdocs-material
    from mkdocs.__main__ import cli

    config = Path(__file__).with_name("mkdocs.yml")
    cli(["build", "--strict", "--config-file", str(config), *sys.argv[1:]])
