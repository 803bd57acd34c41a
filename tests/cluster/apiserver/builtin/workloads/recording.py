"""Writes down what a real API server answers to all cases, so that they can be checked where there is none.

Run it as a module, with a kubeconfig and the name of a namespace.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.cluster.apiserver.builtin.workloads.cases import CASES
from tests.cluster.apiserver.builtin.workloads.objects import changed
from tests.cluster.apiserver.builtin.workloads.server import KINDS, Server, settled, told_causes

RECORDED = Path(__file__).parent / "recorded.json"


def answer(server: Server, name: str) -> dict[str, Any]:
    """The answer to one case, without what differs from one time to the next."""
    _, kind, changes = next(case for case in CASES if case[0] == name)
    path = f"{server.path(KINDS[kind])}?dryRun=All"
    status, told, warnings = server.ask("POST", path, changed(kind, changes))
    made: dict[str, Any] = {"status": status}
    if status == 201:
        made["object"] = settled(told)
        if warnings:
            made["warnings"] = sorted(warnings)
    else:
        made["causes"] = sorted(told_causes(told))
    return made


if __name__ == "__main__":
    asked = Server(Path(sys.argv[1]), sys.argv[2])
    found = {name: answer(asked, name) for name, _, _ in CASES}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(each, sort_keys=True)}" for name, each in found.items())
    RECORDED.write_text(f"{{\n{lines}\n}}\n")
