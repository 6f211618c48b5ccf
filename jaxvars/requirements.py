"""The versions that jaxvars needs: an environment that has others is refused before JAX is used.

Rules of this file: Python 3.7 can read it, and a good import pays microseconds for it.
"""

from __future__ import annotations

import re
import sys

PYTHON = (3, 11)
RANGES = {
    "jax": ">=0.10.2,<0.13",
    "jaxlib": ">=0.10.2,<0.13",
    "numpy": ">=2.2,<3",
    "flax": ">=0.12.8,<0.13",
    "optax": ">=0.2.8,<0.3",
    "orbax-checkpoint": ">=0.12.8,<0.13",
    "tensorstore": ">=0.1.86,<0.2",
    "flatbuffers": ">=25,<26",
    "absl-py": ">=2.1,<3",
    "protobuf": ">=5,<8",
    "rich": ">=14,<16",
}
"""The dependencies in pyproject.toml."""

MISSING = "not installed"

_FIRST = ("jax", "jaxlib", "numpy")  # `import jax` needs them, and reports others by itself
_PLUGINS = {"jax-cuda12-plugin": "cuda12", "jax-cuda13-plugin": "cuda13"}


def installed(name: str) -> str:
    """Return the version of the package that is installed, or `MISSING`."""
    from importlib import metadata  # here, because it takes milliseconds

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return MISSING


def fits(name: str, version: str) -> bool:
    """Return whether jaxvars was made for this version of one of its dependencies."""
    low, high = RANGES[name][2:].split(",<")
    return _numbers(low) <= _numbers(version) < _numbers(high)


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]


def check() -> None:
    """Raise ImportError with the command that mends it, where JAX is missing or does not fit."""
    if sys.version_info < PYTHON:
        _refuse(_other_python())
    try:
        import jax
    except Exception as error:
        wrong = _wrong(str(error))
        if wrong:
            _refuse(_other_versions(wrong))
        raise
    if not fits("jax", jax.__version__):
        _refuse(_other_versions(_wrong() or [f"jax {jax.__version__}"]))


def _wrong(said: str = "") -> list[str]:
    """Return what does not fit, where JAX is of a wrong version or has said this."""
    found = {name: installed(name) for name in _FIRST}
    wrong = [
        f"{name} {found[name]} (needed: {RANGES[name]})"
        for name in _FIRST
        if not fits(name, found[name])
    ]
    if not wrong and "jaxlib" in said:  # some differ and fit, which JAX knows
        wrong.append("jaxlib {jaxlib} (needed: {jax}, as jax)".format(**found))
    return wrong


def _refuse(message: str) -> None:
    if sys.argv[:1] == ["-m"]:  # Python looks for the program: `python -m jaxvars doctor`
        raise SystemExit(message)
    raise ImportError(message) from None


def _other_python() -> str:
    return (
        "jaxvars needs Python {1}.{2} or newer, and {0} is Python {3}.{4}.\n"
        "Make an environment with a newer one, and install jaxvars there:\n"
        "    python3.12 -m venv .venv && source .venv/bin/activate"
    ).format(sys.executable, *PYTHON, *sys.version_info[:2])


def _other_versions(wrong: list[str]) -> str:
    plugins = [extra for name, extra in _PLUGINS.items() if installed(name) != MISSING]
    names = {"jax": f"jax[{plugins[0]}]" if plugins else "jax"}
    needed = " ".join(f'"{names.get(name, name)}{RANGES[name]}"' for name in _FIRST)
    lines = "".join(f"\n    {line}" for line in wrong)
    return (
        f"jaxvars cannot run with what {sys.executable} has:{lines}\n"
        f"Run:\n    {sys.executable} -m pip install --upgrade {needed}"
    )


check()
