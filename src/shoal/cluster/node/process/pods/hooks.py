"""What a container asks to be done right after its start and right before its end."""

from __future__ import annotations

import asyncio

from shoal.api.core.pod_details import LifecycleHandler
from shoal.cluster.node.process.pods.checks import VERSION, Target, Unaskable, request
from shoal.cluster.node.process.pods.commands import run_in
from shoal.cluster.node.process.pods.http_get import Unanswered


class HookFailed(Exception):
    """A hook did not do what it should; the message is for the status, since it may tell more than an event may."""


async def run_hook(handler: LifecycleHandler, target: Target, pod: str) -> None:
    """Runs a hook to its end, however long it takes; raises HookFailed. ``pod`` is how the pod is called in messages.

    Any answer to a request is good, as any is for a kubelet; a connection alone is no hook.
    """
    name = target.container.name
    whose = f'for Container "{name}" in Pod "{pod}" failed'
    if handler.exec is not None:
        words = " ".join(handler.exec.command)
        try:
            assert target.spec is not None, "a container that runs was started by us"
            result = await run_in(target.runtime, target.spec, handler.exec.command, within=None)
        except Exception as error:
            raise HookFailed(f'Exec lifecycle hook ([{words}]) {whose} - error: {error}, message: ""') from error
        if result.exit_code:
            problem = f"command '{words}' exited with {result.exit_code}: {result.output}"
            raise HookFailed(f'Exec lifecycle hook ([{words}]) {whose} - error: {problem}, message: "{result.output}"')
    elif handler.http_get is not None:
        try:
            await request(target, handler.http_get, agent=f"kube-lifecycle/{VERSION}", within=None)
        except (Unanswered, Unaskable) as error:
            raise HookFailed(f"HTTP lifecycle hook ({handler.http_get.path}) {whose} - error: {error}") from None
    elif handler.sleep is not None:
        await asyncio.sleep(handler.sleep.seconds)
    else:
        raise HookFailed(f"Cannot run handler: it is none of exec, httpGet and sleep (container {name})")
