"""``shoal down``: ends what ``shoal up`` started in a data dir."""

from __future__ import annotations

import os
import select
import signal

from shoal.cli.data_dir import DataDir
from shoal.cli.exits import CommandError
from shoal.cli.output import write
from shoal.cli.up import DATA_DIR, DataDirOption

EXAMPLES = {
    "shoal down": "Stop the Shoal of this folder",
    "shoal down --data-dir /tmp/try": "Stop another one",
}

STOPPED_WITHIN = 15.0


def down(data_dir: DataDirOption = DATA_DIR) -> None:
    """Stop the Shoal that runs in a data dir, and keep its data.

    Does nothing where none runs.
    """
    place = DataDir(data_dir)
    holder = place.holder()
    if holder is None:
        write(f"Shoal is not running in {place.path}\n")
        return
    if not _end(place, holder):
        raise CommandError(f"process {holder} has not ended after {STOPPED_WITHIN:.0f} s: see {place.log}")
    write("Shoal is stopped\n")


def _end(place: DataDir, holder: int) -> bool:
    """Asks the holder to end, and never a stranger who was given its number since; whether it ended in time."""
    try:
        process = os.pidfd_open(holder)
    except ProcessLookupError:
        return True
    try:
        if place.holder() != holder:
            return True
        signal.pidfd_send_signal(process, signal.SIGTERM)
        ended, _, _ = select.select([process], [], [], STOPPED_WITHIN)
        return bool(ended)
    except ProcessLookupError:
        return True
    finally:
        os.close(process)
