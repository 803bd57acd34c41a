"""TrainJobs and their pods as a client outside sees them: how many pods have been there, and who has ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.starting.observer import Stalled
from shoal.api.core import PODS
from shoal.api.jobset import names as job_set_names
from shoal.api.meta import PartialObject, find_condition
from shoal.api.trainer import TRAIN_JOBS, TrainJob, names
from shoal.kube import Cache, Change, Client, HttpTransport, load_connection
from shoal.kube.transport import Request

_STALLED_AFTER = 120.0
_SYNCED_WITHIN = 60.0


class Observer:
    """What there is in a namespace, while its block lasts; it watches as our own controllers do."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self._transport = HttpTransport(load_connection(kubeconfig))
        self.client = Client(self._transport)
        self._cache = Cache(self.client, namespace=namespace)
        self._watching: asyncio.Task[None] | None = None
        self._failed = ""
        self.pods: set[str] = set()
        """The pods of JobSets that have been there."""
        self.complete: set[str] = set()
        """The TrainJobs that are Complete."""
        pods = self._cache.informer(PODS.view(PartialObject), label_selector=job_set_names.JOB_SET_NAME)
        pods.subscribe(self._pod_changed)
        self._cache.informer(TRAIN_JOBS).subscribe(self._train_job_changed)

    async def __aenter__(self) -> Observer:
        self._watching = asyncio.create_task(self._cache.run())
        await self._cache.wait_for_sync(_SYNCED_WITHIN)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._watching is not None
        self._watching.cancel()
        await asyncio.gather(self._watching, return_exceptions=True)
        await self.client.close()

    async def until(self, what: str, wanted: int, count: Callable[[], int], say: Callable[[str], None]) -> float:
        """Waits until there are so many, and gives the moment; raises Stalled when nothing moves or one fails."""
        assert self._watching is not None
        last, moved = count(), time.perf_counter()
        told = moved
        while (now := count()) < wanted:
            if self._watching.done():
                self._watching.result()
            if self._failed:
                raise Stalled(self._failed)
            await asyncio.sleep(0.005)
            moment = time.perf_counter()
            if now != last:
                last, moved = now, moment
            elif moment - moved > _STALLED_AFTER:
                raise Stalled(f"{now:,} of {wanted:,} {what}, and nothing happens any more")
            if moment - told > 10:
                told = moment
                say(f"  {now:,} of {wanted:,} {what}")
        return time.perf_counter()

    async def metrics(self) -> str:
        """What the API server counts."""
        answer = await self._transport.send(Request(method="GET", path="/metrics", timeout=60))
        if answer.status != 200:
            raise Stalled(f"the server's metrics were answered with {answer.status}")
        return answer.body.decode()

    def _pod_changed(self, change: Change[PartialObject]) -> None:
        self.pods.add(change.latest.metadata.name)

    def _train_job_changed(self, change: Change[TrainJob]) -> None:
        found: Any = change.after
        if found is None:
            self.complete.discard(change.latest.metadata.name)
            return
        failed = find_condition(found.status.conditions, names.FAILED)
        if failed is not None and failed.status == "True":
            self._failed = f"TrainJob {found.metadata.name} has failed: {failed.message}"
        ended = find_condition(found.status.conditions, names.COMPLETE)
        if ended is not None and ended.status == "True":
            self.complete.add(found.metadata.name)
