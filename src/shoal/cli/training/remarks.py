"""What is told beside an answer: on stderr, so that scripts read the answer alone."""

from __future__ import annotations

import sys


def remark(text: str) -> None:
    """Tells a person something, in one line."""
    sys.stderr.write(f"shoal: {' '.join(text.split())}\n")
    sys.stderr.flush()
