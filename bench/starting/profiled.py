"""``shoal`` with a profiler around the event loop of each of its processes: only for looking where time goes.

What is found lies in the folder that ``SHOAL_BENCH_PROFILES`` names, one file a process.
"""

from __future__ import annotations

import cProfile
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from shoal.cli import main
from shoal.cli.processes import loops


def _profile_loops(folder: Path) -> None:
    run_loop = loops.run_loop

    def profiled(main: Coroutine[Any, Any, None]) -> None:
        profiler = cProfile.Profile()
        try:
            profiler.runcall(run_loop, main)
        finally:
            profiler.dump_stats(folder / f"{getattr(main, '__name__', '').strip('_')}-{os.getpid()}.prof")

    # The processes' own modules are loaded later, and take this one.
    loops.run_loop = profiled


if __name__ == "__main__":
    folder = Path(os.environ["SHOAL_BENCH_PROFILES"])
    folder.mkdir(parents=True, exist_ok=True)
    _profile_loops(folder)
    sys.exit(main())
