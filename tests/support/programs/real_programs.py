"""Real programs that tests run in pods: a JupyterLab, and Debian's PostgreSQL.

Made by the script of the example that shows them (examples/local-node/make-images), JupyterLab from what
requirements/jupyter.txt pins with hashes.

    python tests/support/programs/real_programs.py    make what is missing, print the folder
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.support.programs.image_folders import ROOT, Unavailable, made, pinned, python_of_all

SCRIPT = ROOT / "examples" / "local-node" / "make-images"
PINS = ROOT / "requirements" / "jupyter.txt"

__all__ = ["Unavailable", "install"]


def install() -> Path:
    """The folder with ``jupyter`` and ``postgresql``; made where it is not there whole."""
    python = python_of_all("Jupyter")
    called = "Jupyter and PostgreSQL"
    return made(SCRIPT, "jupyter", "postgresql", called=called, pins=PINS, PYTHON=python, JUPYTER=pinned(PINS))


if __name__ == "__main__":
    try:
        print(f"real-programs: {install()}")
    except Unavailable as unavailable:
        sys.exit(f"real-programs: {unavailable}")
