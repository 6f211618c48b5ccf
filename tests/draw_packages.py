"""Draw the packages of jaxvars and what they stand on: `python tests/draw_packages.py`.

An arrow leads from a package to one that imports it; those that follow from others are left out.
`tests/test_layers.py` holds `.github/packages.svg` against the code.
"""

from __future__ import annotations

from itertools import combinations

from test_layers import LAYERS, PACKAGE, ROOT, edges, package_of

from jaxvars.graph.svg import Box, draw

PICTURE = ROOT / ".github" / "packages.svg"
SPINE = ("tracing", "tensors", "core", "autodiff", "control", "compiler")


def whole(package: str) -> str:
    """The box that a package is drawn in: the outermost folder, or file."""
    return package.split(".")[0]


def imported() -> dict[str, set[str]]:
    """For each package, those that it imports."""
    found: dict[str, set[str]] = {}
    for file, targets in edges(PACKAGE).items():
        user = whole(package_of(file))
        found.setdefault(user, set()).update(whole(package_of(target)) for target in targets)
        found[user].discard(user)
    return found


def reduced(uses: dict[str, set[str]], names: list[str]) -> list[tuple[str, str]]:
    """The imports that do not follow from others, as (imported, user)."""
    reach: dict[str, set[str]] = {}
    for name in names:  # lowest first
        reach[name] = uses[name].union(*(reach[lower] for lower in uses[name]))
    return [
        (lower, name)
        for lower, name in combinations(names, 2)
        if lower in uses[name] and not any(lower in reach[other] for other in uses[name])
    ]


def picture() -> str:
    """The picture, as an SVG document."""
    uses = imported()
    for name in ("__init__", "__main__", "demo", "errors", "typing"):  # for or from all
        uses.pop(name, None)
    uses = {name: used & set(uses) for name, used in uses.items()}
    listed = [whole(name) for row in LAYERS for name in row]
    names = [name for name in dict.fromkeys(listed) if name in uses]
    boxes = [Box("control" if name in SPINE else "operation", name) for name in names]
    arrows = [(names.index(lower), names.index(name)) for lower, name in reduced(uses, names)]
    drawn = draw(boxes, arrows, title="jaxvars: which package stands on which")
    return drawn.replace(">operation<", ">package<").replace(">loop or branch<", ">spine<") + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
