"""Pods with the official client: ``python -m bench.holding.official_pods hold|follow SERVER COUNT``.

Changes are followed by its own informer, with one handler. ``--no-gc`` switches Python's collector off, which it does
not do by itself.
"""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

from kubernetes import client
from kubernetes.informer import SharedInformer

from bench.holding.account import Followed, Held, Moment, resident, tell


def hold(server: str, count: int) -> Held:
    core = core_of(server)
    before, began = resident(), Moment.now()
    store: dict[tuple[str, str], Any] = {}
    token = None
    while True:
        page = core.list_pod_for_all_namespaces(limit=500, _continue=token)
        for pod in page.items:
            store[pod.metadata.namespace, pod.metadata.name] = pod
        token = page.metadata.var_continue
        if not token:
            break
    del page, pod
    ended = Moment.now()
    assert len(store) == count
    return Held(
        pods=count, seconds=ended.clock - began.clock, cpu_seconds=ended.cpu - began.cpu, memory=resident() - before
    )


def follow(server: str, count: int) -> Followed:
    informer = SharedInformer(core_of(server).list_pod_for_all_namespaces)
    marks: list[Moment] = []
    done = threading.Event()

    def count_change(_: Any) -> None:
        marks.append(Moment.now())
        if len(marks) == count:
            done.set()

    informer.add_event_handler("MODIFIED", count_change)
    informer.start()
    done.wait()
    began, ended = marks[0], marks[-1]
    return Followed(changes=count - 1, seconds=ended.clock - began.clock, cpu_seconds=ended.cpu - began.cpu)


def core_of(server: str) -> client.CoreV1Api:
    return client.CoreV1Api(client.ApiClient(client.Configuration(host=server)))


def main(arguments: list[str]) -> None:
    if "--no-gc" in arguments:
        gc.disable()
    what, server, count = [argument for argument in arguments if argument != "--no-gc"]
    tell(hold(server, int(count)) if what == "hold" else follow(server, int(count)))


if __name__ == "__main__":
    main(sys.argv[1:])
