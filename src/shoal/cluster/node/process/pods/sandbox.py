"""What the containers of one pod share, from when it is made until it goes: network, name, volumes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

from shoal.api.core.pod_details import PodDetails
from shoal.cluster.node.addresses import NoAddress
from shoal.cluster.node.process.client import RuntimeFault
from shoal.cluster.node.process.contents import ConfigProblem, VolumeProblem
from shoal.cluster.node.process.pods.collaborators import DISCONNECTED, Collaborators
from shoal.cluster.node.process.runtime.protocol import SandboxSpec, SandboxState

_FIRST_AGAIN, _LAST_AGAIN = 0.5, 120.0
"""Seconds after which volumes and sandboxes are tried again, twice as long each time."""
_STALE_AGAIN = 10.0
"""Seconds until files that could not be brought up to date are tried again."""
LOOKS_EVERY = 60.0
"""Seconds after which the clock is looked at again: while a machine sleeps, no time passes for those who wait."""


class Sandbox:
    """The sandbox of a pod and its volumes. What fails is told as an event, and due again later."""

    def __init__(self, means: Collaborators, *, address: str, is_there: bool) -> None:
        self.address = address
        """The pod's address, once it has one."""
        self.is_there = is_there
        """Whether the runtime has it."""
        self.is_ready = False
        """Whether containers can be started in it: its volumes are there too."""
        self.due: datetime | None = None
        self.tries = 0
        self._means = means
        self._is_opening = False
        self._is_stale = asyncio.Event()

    def is_due(self, now: datetime) -> bool:
        """Whether it is to be opened now; what seems to be due much later was told by a clock that was set back."""
        is_resting = self.due is not None and timedelta(0) < self.due - now <= timedelta(seconds=_LAST_AGAIN)
        return not self.is_ready and not self._is_opening and not is_resting

    async def open(self, pod: PodDetails) -> None:
        """Makes the sandbox and, at the same time, the volumes; both may be there already."""
        self._is_opening, self.due = True, None
        try:
            made, prepared = await self._opened(pod)
        finally:
            self._is_opening = False
        if isinstance(made, SandboxState):
            self.is_there = True
        for problem, reason, words in (
            (made, "FailedCreatePodSandBox", "Failed to create pod sandbox: "),
            (prepared, "FailedMount", ""),
        ):
            if isinstance(problem, BaseException):
                self._fail(pod, problem, reason, words)
        self.is_ready = isinstance(made, SandboxState) and prepared is None

    def refresh(self) -> None:
        """Something that volumes are made of has changed."""
        self._is_stale.set()
        if not self.is_ready and self.due is not None:
            self.due = self._means.now()

    async def keep_fresh(self, pod: Callable[[], PodDetails]) -> None:
        """Brings volumes up to date whenever something has changed or a token is due, until cancelled."""
        contents = self._means.contents
        clock = asyncio.get_running_loop().time
        again: float | None = None
        while True:
            seconds = contents.next_refresh(pod()) if again is None else max(0.0, again - clock())
            is_stale = await self._is_stale_within(LOOKS_EVERY if seconds is None else min(seconds, LOOKS_EVERY))
            if not is_stale and (seconds is None or seconds > LOOKS_EVERY):
                continue
            self._is_stale.clear()
            try:
                await contents.refresh(pod())
                again = None
            except VolumeProblem as problem:
                self._means.warn(pod(), "FailedMount", problem.message)
                again = clock() + _STALE_AGAIN

    async def _is_stale_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._is_stale.wait()
        except TimeoutError:
            return False

    async def close(self, pod: PodDetails) -> None:
        """Ends all that runs in it and gives back what it had; its files stay."""
        uid = pod.metadata.uid
        await self._means.runtime.close_sandbox(uid)
        self._means.gpus.release(uid)
        self._means.addresses.release(uid, self.address if self._has_own_address(pod) else "")
        self.is_there = self.is_ready = False

    async def _opened(self, pod: PodDetails) -> tuple[SandboxState | BaseException, BaseException | None]:
        means, metadata = self._means, pod.metadata
        try:
            own = self._has_own_address(pod)
            self.address = self.address or (means.addresses.take(metadata.uid) if own else means.node_address)
            spec = SandboxSpec(
                uid=metadata.uid,
                name=f"{metadata.namespace}/{metadata.name}",
                hostname=means.contents.hostname(pod),
                address=self.address if own else "",
                shares_processes=pod.spec.share_process_namespace,
                sysctls={sysctl.name: sysctl.value for sysctl in pod.spec.security_context.sysctls},
            )
        except (ConfigProblem, NoAddress) as problem:
            return problem, None
        made, prepared = await asyncio.gather(
            means.runtime.open(spec), means.contents.prepare(pod, address=self.address), return_exceptions=True
        )
        return made, prepared

    def _fail(self, pod: PodDetails, problem: BaseException, reason: str, words: str) -> None:
        if isinstance(problem, RuntimeFault) and problem.reason == DISCONNECTED:
            return
        message = str(problem)
        if isinstance(problem, (RuntimeFault, ConfigProblem, VolumeProblem)):
            message = problem.message
        self._means.warn(pod, reason, f"{words}{message}")
        if self.due is None:
            rest = min(_FIRST_AGAIN * 2 ** min(self.tries, 10), _LAST_AGAIN)
            self.due = self._means.now() + timedelta(seconds=rest)
            self.tries += 1

    def _has_own_address(self, pod: PodDetails) -> bool:
        return self._means.has_pod_network and not pod.spec.host_network
