"""Files that only their owner may read, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def write_private(path: Path, content: bytes | str) -> None:
    """Writes a file of mode 0600 in one step: readers see the old content or the new."""
    data = content.encode() if isinstance(content, str) else content
    unfinished = ""
    try:
        descriptor, unfinished = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(unfinished).replace(path)
    except OSError as error:  # which names the unfinished file, or none
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        if unfinished:
            Path(unfinished).unlink(missing_ok=True)


def kept(path: Path, make: Callable[[], bytes]) -> bytes:
    """The content of a private file, made on first use."""
    if not path.exists():
        write_private(path, make())
    return path.read_bytes()
