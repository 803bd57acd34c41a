"""What tests of training run: JAX, XGBoost and the Kubeflow SDK from PyPI, and Debian's OpenMPI and PyTorch.

Made by the script of the example that shows them (examples/training/make-images), each part by itself, so that one that
cannot be had on a machine takes none of the others along. What pip installs is pinned in requirements/training.txt.

    python tests/support/programs/training_programs.py    make what is missing, print the folders
"""

from __future__ import annotations

import enum
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.support.programs.image_folders import ROOT, Unavailable, made, pinned, python_of_all
from tests.support.programs.ordinary_user import USER

EXAMPLE = ROOT / "examples" / "training"
SCRIPT = EXAMPLE / "make-images"
PINS = ROOT / "requirements" / "training.txt"

__all__ = ["EXAMPLE", "Part", "Unavailable", "install", "is_required"]


class Part(enum.StrEnum):
    """An image of the example, by the name of its folder."""

    PYTHON = "python"
    MPI = "mpi"
    TORCH = "torch"


_CALLED = {
    Part.PYTHON: "JAX, XGBoost and the Kubeflow SDK",
    Part.MPI: "OpenMPI with mpi4py",
    Part.TORCH: "PyTorch for CPUs",
}


def install(part: Part) -> Path:
    """The folder of a part; made where it is not there whole."""
    called = _CALLED[part]
    if part is not Part.PYTHON:
        return made(SCRIPT, part, called=called, owner=USER) / part
    return (
        made(SCRIPT, part, called=called, pins=PINS, PYTHON=python_of_all(called), PACKAGES=pinned(PINS)) / Part.PYTHON
    )


def is_required() -> bool:
    """Whether it is an error that a part cannot be had, as where changes are judged."""
    return os.environ.get("SHOAL_REQUIRE_TRAINING", "") not in ("", "0")


def _install_all() -> bool:
    """Makes all parts at once, most of which is waiting for the network; says of each where it is, or why not."""

    def line(part: Part) -> tuple[bool, str]:
        try:
            return True, str(install(part))
        except Unavailable as unavailable:
            return False, str(unavailable)

    with ThreadPoolExecutor() as pool:
        lines = list(pool.map(line, Part))
    for part, (_, text) in zip(Part, lines, strict=True):
        print(f"training-programs: {part}: {text}", flush=True)
    return all(is_there for is_there, _ in lines)


if __name__ == "__main__":
    is_complete = _install_all()
    sys.exit(0 if is_complete or not is_required() else 1)
