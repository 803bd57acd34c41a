"""What a namespace's pods violate of a policy that is about to be enforced there.

They keep running; the user who sets the policy is warned. Of many pods that violate the same checks, one is named. At
most 3,000 pods are checked, within a second, as in Kubernetes; one pod of each controller goes before its replicas,
which violate the same. Other requests are answered in between.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from itertools import islice

from shoal.cluster.apiserver.admission.pod_security.checks import CheckedPod
from shoal.cluster.apiserver.admission.pod_security.evaluation import violations
from shoal.cluster.apiserver.admission.pod_security.policy import LevelVersion
from shoal.cluster.apiserver.kinds.kind import Object

MOST_PODS = 3_000
MOST_SECONDS = 1.0

_AT_A_TIME = 50
"""After so many pods, a few milliseconds' work, other requests have their turn."""


async def warnings_for(
    pods: Iterable[Object],
    *,
    count: int,
    namespace: str,
    policy: LevelVersion,
    clock: Callable[[], float] = time.monotonic,
) -> list[str]:
    """The warnings on a new policy; ``count`` is the number of pods."""
    deadline = clock() + MOST_SECONDS
    controllers: set[str] = set()
    first: list[tuple[str, str]] = []
    replicas: list[tuple[str, str]] = []
    remaining = iter(pods)
    while batch := list(islice(remaining, _AT_A_TIME)):
        for pod in batch:
            controller = _controller(pod)
            among = replicas if controller and controller in controllers else first
            controllers.add(controller)
            if len(among) < MOST_PODS:
                reasons = [each.reason for each in violations(policy, CheckedPod.of(pod))]
                among.append((pod["metadata"]["name"], ", ".join(reasons)))
        if clock() > deadline or len(first) >= MOST_PODS:
            break
        await asyncio.sleep(0)
    checked = [*first, *replicas][:MOST_PODS]
    warnings = []
    if len(checked) < count:
        warnings.append(
            f"new PodSecurity enforce level only checked against the first {len(checked)} of {count} existing pods"
        )
    grouped = _grouped(checked)
    if grouped:
        warnings.append(
            f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{policy}"'
        )
    return warnings + grouped


def _grouped(checked: Iterable[tuple[str, str]]) -> list[str]:
    """One warning for all pods that violate the same checks, which names the first of them."""
    names: dict[str, list[str]] = {}
    for name, reasons in checked:
        if reasons:
            names.setdefault(reasons, []).append(name)
    return sorted(f"{min(of)}{_others(len(of) - 1)}: {reasons}" for reasons, of in names.items())


def _others(count: int) -> str:
    if not count:
        return ""
    return f" (and {count} other pod{'s' if count > 1 else ''})"


def _controller(pod: Object) -> str:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((owner.get("uid", "") for owner in owners if owner.get("controller")), "")
