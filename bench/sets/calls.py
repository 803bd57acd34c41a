"""How many requests were made: by our process as it counts them itself, and of which kind as the server counts them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from bench.starting.observer import Stalled
from shoal.cli.processes.control import control_socket
from shoal.kube import Connection, HttpTransport
from shoal.kube.transport import Request

_SAMPLE = re.compile(r"^(\w+)\{(.*)\} (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_WATCHES = ("WATCH", "WATCHLIST", "CONNECT")


def sent(page: str) -> Counter[str]:
    """The requests of a process, by the code of their answers."""
    found: Counter[str] = Counter()
    for labels, value in _samples(page, "rest_client_requests_total"):
        found[labels["code"]] += value
    return found


def served(page: str) -> Counter[str]:
    """The requests to a server, watches aside, by verb and kind, and by code where it is no success."""
    found: Counter[str] = Counter()
    for labels, value in _samples(page, "apiserver_request_total"):
        if labels["verb"] in _WATCHES:
            continue
        kind = "/".join(filter(None, (labels["resource"], labels["subresource"])))
        code = labels["code"]
        found[f"{labels['verb']} {kind}" + ("" if code.startswith("2") else f" {code}")] += value
    return found


def since(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """What was added, the most first."""
    added = {name: count - before.get(name, 0) for name, count in after.items()}
    return dict(sorted(((name, count) for name, count in added.items() if count), key=lambda item: -item[1]))


async def of_controllers(data_dir: Path) -> str:
    """The metrics of the process that runs the controllers."""
    transport = HttpTransport(Connection(server=f"unix://{control_socket(data_dir)}"))
    try:
        answer = await transport.send(Request(method="GET", path="/metrics", timeout=30))
    finally:
        await transport.close()
    if answer.status != 200:
        raise Stalled(f"the controllers' metrics were answered with {answer.status}")
    return answer.body.decode()


def _samples(page: str, name: str) -> list[tuple[dict[str, str], int]]:
    samples = []
    for line in page.splitlines():
        if line.startswith(name) and (match := _SAMPLE.match(line)) and match[1] == name:
            samples.append((dict(_LABEL.findall(match[2])), int(float(match[3]))))
    return samples
