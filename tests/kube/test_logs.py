from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import structlog
from shoal.kube import configure_logs

configure_logs(as_json=True)
log = structlog.get_logger()
log.error("the disk is full")
log.error("and still is")
print("went on")
"""


def test_a_log_that_cannot_be_written_fails_nobody() -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=full, text=True, check=False
        )
    assert (done.returncode, done.stdout) == (0, "went on\n")
