"""Pods that talk: to each other, directly and through a Service; to DNS; and to their logs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from bench.pods.outside import NAMESPACE, Pods
from bench.pods.specs import DATAGRAMS, PORT, program, programs, service
from bench.starting.observer import Stalled

CLIENTS = 8
_NAME = "serve"


@dataclass(frozen=True, kw_only=True)
class TalkPlan:
    """How long and how much."""

    rounds: int = 5
    seconds: float = 2.0
    """Of each figure in a round."""
    megabytes: int = 400
    logged_megabytes: int = 100


async def prepare(pods: Pods) -> None:
    """Makes what the programs of these pods are mounted from."""
    await pods.post(f"/api/v1/namespaces/{NAMESPACE}/configmaps", programs())


async def services(pods: Pods, plan: TalkPlan) -> dict[str, dict[str, list[float]]]:
    """Rates of each round by the way that was taken: ``direct``, ``service``, ``names``, ``datagrams``."""
    made = await pods.post(f"/api/v1/namespaces/{NAMESPACE}/services", service(_NAME, app=_NAME))
    server = await pods.create(_NAME, program("serve"))
    await pods.until([server], lambda one: bool(one.ready), "were ready")
    own = server.pod.status.pod_ip
    asked = {
        "rounds": plan.rounds,
        "seconds": plan.seconds,
        "megabytes": plan.megabytes,
        "clients": CLIENTS,
        "endpoints": {"direct": [own, PORT], "service": [made["spec"]["clusterIP"], 80]},
        "datagrams": [own, DATAGRAMS],
        "name": _NAME,
    }
    return await _told(pods, "ask", asked)


async def logs(pods: Pods, plan: TalkPlan) -> dict[str, dict[str, list[float]]]:
    """Megabytes a second of each round, in ``blocks`` and in ``lines``, to the ``log`` and to a ``file``."""
    asked = {"rounds": plan.rounds, "megabytes": plan.logged_megabytes, "file": "/scratch/written"}
    return await _told(pods, "chat", asked)


async def _told(pods: Pods, name: str, plan: dict[str, Any]) -> dict[str, dict[str, list[float]]]:
    """What a program has to say at its end."""
    seen = await pods.create(name, program(name, plan))
    await pods.until([seen], lambda one: one.pod.is_over, "ended")
    if seen.pod.status.phase != "Succeeded":
        raise Stalled(f"the pod {name} failed: {seen.pod.last_words or 'see its log'}")
    told: dict[str, dict[str, list[float]]] = json.loads(seen.pod.last_words)
    await pods.delete_all()
    return told
