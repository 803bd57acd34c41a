"""``grove-initc``: waits until the cliques that start first have enough ready pods, and says for whom it waits.

Exit codes: 0 all are ready, 1 the cluster cannot be asked, 2 the arguments make no sense. It ends at once on SIGTERM
and SIGINT, also as the first process of a container, which the system would otherwise not let them end.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Final, NoReturn

from shoal.api.grove import start_order
from shoal.gangs.startup.gang_pods import GangPods, Refused, Unreachable
from shoal.gangs.startup.surroundings import Surroundings, Unusable

USAGE: Final = f"""usage: {start_order.CONTAINER} {start_order.FLAG}=CLIQUE:NUMBER [{start_order.FLAG}=CLIQUE:NUMBER …]

Waits until so many pods of each PodClique, in the gang of the pod that this runs in, are ready."""

PATIENCE: Final = 10.0
"""Seconds for which a refusal is put up with: what permits to look at pods may be a moment younger than the pod."""
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program, and gives its exit code."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given and given[0] in ("-h", "--help"):
        _say(USAGE)
        return 0
    try:
        cliques = start_order.awaited(given)
    except start_order.InvalidArguments as error:
        _complain(f"{error}\n{USAGE}")
        return 2
    try:
        wait(cliques, GangPods(Surroundings.found(os.environ), list(cliques)))
    except (Unusable, Refused) as error:
        _complain(str(error))
        return 1
    return 0


def wait(cliques: Mapping[str, int], pods: GangPods, *, patience: float = PATIENCE) -> None:
    """Returns once enough pods of all cliques are ready; raises Refused and Unusable."""
    told: Sequence[start_order.Missing] = ()
    trouble, refused_since, pause = "", 0.0, _FIRST_PAUSE
    while True:
        began = time.monotonic()
        try:
            for counts in pods.counts():
                trouble, refused_since, pause = "", 0.0, _FIRST_PAUSE
                missing = start_order.missing(cliques, counts)
                for one in missing:
                    if one not in told:
                        _say(f"waiting for {one}")
                told = missing
                if not missing:
                    _say(f"ready: {', '.join(cliques)}")
                    return
        except Unreachable as error:
            if str(error) != trouble:
                trouble = str(error)
                _complain(f"the API server cannot be asked: trying again ({trouble})")
        except Refused as error:
            refused_since = refused_since or time.monotonic()
            if time.monotonic() - refused_since >= patience:
                raise Refused(
                    f"the API server does not let the pod's account see the pods it waits for: {error}"
                ) from error
        if time.monotonic() - began > _LONGEST_PAUSE:
            pause = _FIRST_PAUSE  # a watch that ended by design, after having been of use
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    os._exit(128 + number)  # there is nothing to tidy up, and all that was said is written


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - what the program is there to tell


def _complain(line: str) -> None:
    print(f"{start_order.CONTAINER}: {line}", file=sys.stderr, flush=True)  # noqa: T201 - see above
