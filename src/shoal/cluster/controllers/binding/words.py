"""What pods that wait are told: why they fit nowhere, on themselves and as an event, and not again until it is another.

To say why means to look at all nodes. It is done beside the decisions, so that no pod waits for its node while another
is given a reason, and for no more than a share of the time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import structlog

from shoal.api.core import PODS, PodCondition, pod_condition
from shoal.api.meta import now
from shoal.cluster.controllers.binding.filters import NO_NODES, explain, nowhere, story_of
from shoal.cluster.controllers.binding.picture import Picture
from shoal.cluster.controllers.binding.volumes import VolumeNeeds
from shoal.cluster.controllers.binding.waiting import Entry, Line, Waiting
from shoal.cluster.controllers.pod_conditions import status_patch
from shoal.kube import About, ApiError, Client, ConnectionFault, Recorder
from shoal.kube.store import key_of

log = structlog.get_logger("shoal.cluster.binding")

_SAME_WORDS = 1.0
"""Seconds for which pods that come to a waiting line are told what the others were, without counting again."""
_EXPLAINED = 256
_PAUSE, _LONG_PAUSE = 1.0, 9.0
"""How many times as long as an explanation took there is none; the long one where it only may have become another."""
_AGAIN_AFTER = 1.0
"""Seconds after which a pod that could not be told is told again."""

Send = Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]


class Words:
    """Tells the pods of lines that sleep why they wait."""

    def __init__(
        self,
        client: Client,
        events: Recorder,
        picture: Picture,
        waiting: Waiting,
        *,
        needs_of: Callable[[Entry], VolumeNeeds],
        send: Send,
        wake: Callable[[], None],
    ) -> None:
        """``send`` takes what is to be written, ``wake`` has the lines that are awake tried."""
        self._client = client
        self._events = events
        self._picture = picture
        self._waiting = waiting
        self._needs_of = needs_of
        self._send = send
        self._wake = wake
        self._owed: dict[Line, None] = {}
        self._to_review: dict[Line, None] = {}
        self._is_outdated = False
        self._something = asyncio.Event()
        self._explained: dict[object, tuple[int, str]] = {}

    def owe(self, line: Line) -> None:
        """The first pod of a line fits nowhere: those of it that do not say so yet are to be told."""
        self._owed[line] = None
        self._something.set()

    def review(self) -> None:
        """Nodes have changed: what pods were told may not be so any more, though they wait as before."""
        self._is_outdated = True
        self._something.set()

    async def run(self) -> None:
        """Tells until cancelled; those who just failed first."""
        while True:
            await self._something.wait()
            self._something.clear()
            if self._is_outdated:
                self._is_outdated = False
                self._to_review |= dict.fromkeys(self._waiting.asleep())
            while lines := self._owed or self._to_review:
                pause = _PAUSE if self._owed else _LONG_PAUSE
                line = next(iter(lines))
                del lines[line]
                began = asyncio.get_running_loop().time()
                try:
                    entries = [] if line.is_awake else self._untold(line)
                except Exception:
                    log.exception("pods not told by a fault of the program why they wait")
                    continue
                took = asyncio.get_running_loop().time() - began
                for entry in entries:
                    await self._send(partial(self._tell, entry, line.message))
                await asyncio.sleep(pause * took)

    def _untold(self, line: Line) -> list[Entry]:
        """The pods of a line that are to say another reason than they do; ``line.message`` is that reason."""
        first = line.first()
        if first is None:
            return []
        needs = self._needs_of(first)
        grounds = (self._picture.nodes_version, needs.problem)
        if not line.untold and line.grounds == grounds:
            return []
        moment = asyncio.get_running_loop().time()
        if line.grounds != grounds or moment - line.said_at > _SAME_WORDS:
            line.said_at, line.message = moment, self._why(first, needs)
        line.grounds = grounds
        story = story_of(line.message)
        # Where the story is the one that the others tell already, only the new ones are asked.
        entries = [line.entries[uid] for uid in line.untold] if story == line.story else list(line.entries.values())
        line.story = story
        line.untold.clear()
        untold = [entry for entry in entries if entry.told != story]
        for entry in untold:
            entry.told = story
        return untold

    def _why(self, entry: Entry, needs: VolumeNeeds) -> str:
        if needs.problem:
            return nowhere(self._picture.count, needs.problem) if self._picture.count else NO_NODES
        if entry.claims or self._picture.neighbours.matter_to(entry.load):
            return explain(entry.load, self._picture, by_volumes=needs.reason_against)
        version, message = self._explained.get(entry.load.shape, (-1, ""))
        if version != self._picture.version:
            message = explain(entry.load, self._picture, by_volumes=lambda state: "")
            if len(self._explained) >= _EXPLAINED:
                self._explained.clear()
            self._explained[entry.load.shape] = (self._picture.version, message)
        return message

    async def _tell(self, entry: Entry, message: str) -> None:
        pod = entry.pod
        metadata = pod.metadata
        if self._waiting.get(metadata.uid) is not entry:
            return
        known = pod_condition(pod, "PodScheduled")
        is_new = known is None or known.status != "False"
        condition = PodCondition(
            type="PodScheduled",
            status="False",
            observed_generation=metadata.generation,
            last_transition_time=now() if known is None or is_new else known.last_transition_time,
            reason="Unschedulable",
            message=message,
        )
        self._events.warning(About.of(PODS, pod), "FailedScheduling", message)
        patch = status_patch(pod, condition)
        # A pod that gets its node while these words are on their way must not be told that it has none.
        patch["metadata"]["resourceVersion"] = metadata.resource_version
        try:
            await self._client.strategic_patch(PODS, metadata.name, patch, metadata.namespace, subresource="status")
        except (ApiError, ConnectionFault) as error:
            if self._waiting.get(metadata.uid) is entry:
                log.warning("pod not told why it waits", pod=str(key_of(pod)), error=str(error))
                asyncio.get_running_loop().call_later(_AGAIN_AFTER, self._tell_again, entry)

    def _tell_again(self, entry: Entry) -> None:
        self._waiting.was_not_told(entry)
        self._wake()
