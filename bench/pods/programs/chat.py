"""In a pod: writes lines to its log and to a file in turn, and leaves the megabytes a second as last words.

Its only argument is JSON: rounds, megabytes of each turn, and the file to write to.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

_LINE = b"2024-05-01 12:00:00,000 INFO step 1234 of 100000: loss 1.2345".ljust(127, b".") + b"\n"
_BLOCK = _LINE * 64
"""What a program writes whose output is buffered, as it is by default where nobody looks on."""


def main() -> None:
    plan = json.loads(sys.argv[1])
    found: dict[str, dict[str, list[float]]] = {}
    for _ in range(plan["rounds"]):
        for pieces, piece in (("blocks", _BLOCK), ("lines", _LINE)):
            rates = found.setdefault(pieces, {"log": [], "file": []})
            rates["log"].append(written(1, piece, plan["megabytes"]))
            to = os.open(plan["file"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            rates["file"].append(written(to, piece, plan["megabytes"]))
            os.close(to)
    Path("/dev/termination-log").write_text(json.dumps(found))


def written(to: int, piece: bytes, megabytes: int) -> float:
    """Megabytes a second."""
    count = megabytes * 1_000_000 // len(piece)
    began = time.perf_counter()
    for _ in range(count):
        left = piece
        while left:
            left = left[os.write(to, left) :]
    return count * len(piece) / 1e6 / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
