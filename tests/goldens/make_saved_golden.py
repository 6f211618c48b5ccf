"""Make saved.jaxvars, a program as the oldest supported JAX writes it: run with that JAX.

PYTHONPATH=.:tests python tests/goldens/make_saved_golden.py
"""

from __future__ import annotations

from pathlib import Path

from saved_programs import BATCH, Net

import jaxvars as jv

if __name__ == "__main__":
    jv.export.save(Net(), Path(__file__).with_name("saved.jaxvars"), (BATCH,))
