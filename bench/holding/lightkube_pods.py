"""Pods with lightkube: ``python -m bench.holding.lightkube_pods hold|follow SERVER COUNT``.

It has no informer: a dict stands for the store. Its own way with Python's collector is none; ``--no-gc`` switches it
off, to tell how much of a difference comes from that.
"""

from __future__ import annotations

import gc
import sys
import warnings
from typing import Any

import uvloop
from lightkube import AsyncClient
from lightkube.config.kubeconfig import KubeConfig
from lightkube.resources.core_v1 import Pod

from bench.holding.account import Followed, Held, Moment, resident, tell


async def hold(server: str, count: int) -> Held:
    client = client_of(server)
    before, began = resident(), Moment.now()
    store: dict[tuple[str, str], Any] = {}
    async for pod in client.list(Pod, namespace="*", chunk_size=500):
        store[pod.metadata.namespace, pod.metadata.name] = pod
    ended = Moment.now()
    assert len(store) == count
    return Held(
        pods=count, seconds=ended.clock - began.clock, cpu_seconds=ended.cpu - began.cpu, memory=resident() - before
    )


async def follow(server: str, count: int) -> Followed:
    client = client_of(server)
    store: dict[tuple[str, str], Any] = {}
    began, seen = Moment.now(), 0
    async for _, pod in client.watch(Pod, namespace="*", resource_version="1"):
        store[pod.metadata.namespace, pod.metadata.name] = pod
        seen += 1
        if seen == count:
            break
    ended = Moment.now()
    return Followed(changes=count, seconds=ended.clock - began.clock, cpu_seconds=ended.cpu - began.cpu)


def client_of(server: str) -> AsyncClient:
    names = {"cluster": "here", "user": "anyone"}
    config = {
        "clusters": [{"name": "here", "cluster": {"server": server}}],
        "users": [{"name": "anyone", "user": {"token": "any"}}],
        "contexts": [{"name": "here", "context": names}],
        "current-context": "here",
    }
    return AsyncClient(config=KubeConfig.from_dict(config), trust_env=False)


def main(arguments: list[str]) -> None:
    if "--no-gc" in arguments:
        gc.disable()
    what, server, count = [argument for argument in arguments if argument != "--no-gc"]
    tell(uvloop.run(hold(server, int(count))) if what == "hold" else uvloop.run(follow(server, int(count))))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
