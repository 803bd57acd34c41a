"""Which recordings of a real cluster were confirmed: told again, the real cluster made the same of every story.

Nothing in Shoal can change what a pinned real server does, so its recordings are compared with it only when the
stories, the recordings, what tells them, or the pins change: when their fingerprint is not the confirmed one.

``python -m tests.support.suites.recordings`` (make verify-recordings) compares all, and writes the fingerprints.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("tests/conformance", "tests/differential", "tests/clients", "tests/clients/live")
_STARTS_A_SERVER = "src/shoal/cluster/kubernetes"
_PINS = ("tests/support/programs/go", "requirements/kubectl.txt")
_PLAYED_BY = {"tests/clients/live": ("tests/clients/transcript.py",)}
"""What plays the scripts of a folder and stands elsewhere."""
_OF_OTHERS = frozenset(
    {
        *("accepted.py", "fuzz", "test_embedded.py", "test_normal.py"),
        *("companions.py", "live", "test_controllers.py", "test_helm.py"),
        *("test_kubectl.py", "test_python_client.py", "test_transcript.py"),
        *("test_reading.py", "test_simulated_nodes.py"),
    }
)
"""What stands beside the recordings and is no part of how they come about."""
_CONFIRMED = "recorded/confirmed"
_ASKED_FOR = "SHOAL_VERIFY_RECORDINGS"


def unless_confirmed(folder: str) -> pytest.MarkDecorator:
    """Skips the comparison of a folder's recordings with the real cluster where that was done."""
    is_needed = os.environ.get(_ASKED_FOR) == "1" or not is_confirmed(ROOT, folder)
    told = f"no story, recording, harness or pin of {folder} changed since a real cluster confirmed it"
    return pytest.mark.skipif(not is_needed, reason=f"{told} (make verify-recordings does so again)")


def is_confirmed(root: Path, folder: str) -> bool:
    """Whether a real cluster confirmed the recordings as they are."""
    file = root / folder / _CONFIRMED
    return file.exists() and file.read_text().strip() == fingerprint(root, folder)


def fingerprint(root: Path, folder: str) -> str:
    """A digest of all that a comparison with the real cluster depends on."""
    digest = hashlib.sha256()
    for place in (folder, _STARTS_A_SERVER, *_PINS, *_PLAYED_BY.get(folder, ())):
        for path in sorted((root / place).rglob("*")) or [root / place]:
            name = str(path.relative_to(root / place))
            is_left_out = "__pycache__" in name or name.split("/", maxsplit=1)[0] in _OF_OTHERS or name == _CONFIRMED
            if path.is_file() and not is_left_out:
                digest.update(f"{place}/{name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def main() -> int:
    """Compares all recordings with the real cluster; what is true is confirmed."""
    os.environ[_ASKED_FOR] = "1"
    failed = 0
    for folder in FOLDERS:
        if pytest.main([f"{folder}/test_real.py", "-q"]) == pytest.ExitCode.OK:
            (ROOT / folder / _CONFIRMED).write_text(fingerprint(ROOT, folder) + "\n")
        else:
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
