"""The visualizer in a process of its own: publishes a new view every second, and takes orders on its standard input.

``calm``: the thread that publishes sleeps in between. ``busy``: it reckons in between, in Python and without a pause,
as a scheduling cycle does. ``report`` prints what it has reckoned so far and the memory of the process.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import os
import sys
import threading
import time

import msgspec
import uvloop

from bench.figures.processes import proportional_memory
from bench.views.cluster import Cluster
from shoal.api.visualizer import ClusterView
from shoal.kube.probes import serving
from shoal.visualizer import Publisher, catch_all, routes, take_short_turns

EVERY = 1.0
VIEWS = 20


class Cycles(threading.Thread):
    """Stands for a scheduler: has nothing of one but the load."""

    def __init__(self, views: list[ClusterView], publisher: Publisher) -> None:
        super().__init__(daemon=True)
        # Forth and back again: what a scheduler does to make a view is not what is measured here.
        self._views = itertools.cycle([*views, *reversed(views[1:-1])])
        self._publisher = publisher
        self._cycle = 0
        self.is_busy = False
        self.reckoned = 0
        self.publishing = 0.0
        """The longest time that one publication took."""

    def run(self) -> None:
        while True:
            until = time.monotonic() + EVERY
            self._cycle += 1
            view = msgspec.structs.replace(next(self._views), cycle=self._cycle)
            began = time.perf_counter()
            self._publisher.publish(view)
            self.publishing = max(self.publishing, time.perf_counter() - began)
            while time.monotonic() < until:
                if self.is_busy:
                    self._reckon()
                else:
                    time.sleep(0.01)

    def _reckon(self) -> None:
        """About a tenth of a millisecond of plain Python."""
        total = 0
        for number in range(2_000):
            total += number * number
        self.reckoned += 1


async def main(nodes: int) -> None:
    cluster, publisher = Cluster(nodes), Publisher()
    cycles = Cycles(cluster.chain(VIEWS), publisher)
    gc.freeze()
    take_short_turns()
    async with serving([*routes(publisher), catch_all()], "127.0.0.1:0") as port:
        cycles.start()
        print(port, cluster.pods, flush=True)
        orders = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(orders), sys.stdin.buffer
        )
        while order := (await orders.readline()).decode().strip():
            match order:
                case "busy" | "calm":
                    cycles.is_busy = order == "busy"
                    print("ok", flush=True)
                case "report":
                    memory = proportional_memory(os.getpid())
                    print(cycles.reckoned, memory, cycles.publishing, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("nodes", type=int)
    uvloop.run(main(parser.parse_args().nodes))
