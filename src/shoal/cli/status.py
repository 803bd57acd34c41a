"""``shoal status``: whether Shoal runs in a data dir, how its parts are, and what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from shoal.cli.data_dir import DataDir, PartState
from shoal.cli.exits import ExitCode
from shoal.cli.output import Format, Table, show, to_table, write
from shoal.cli.up import DATA_DIR, DataDirOption

EXAMPLES = {
    "shoal status": "See whether it is up",
    "shoal status -o json": "Ask from a script; the exit code is 0 only where all is well",
}

ANSWERS_WITHIN = 5.0
_MEGABYTE = 1024 * 1024


def status(
    data_dir: DataDirOption = DATA_DIR,
    output: Annotated[Format, typer.Option("--output", "-o", help="How to print.")] = Format.TABLE,
) -> None:
    """Say whether Shoal runs in a data dir, where it answers, how its parts are, and what it holds.

    Memory is each part's share: what several have in common is counted once in all. The exit code is 0 where it is
    ready and every part runs, otherwise 1.
    """
    place = DataDir(data_dir)
    holder = place.holder()
    endpoints = place.endpoints() if holder else {}
    parts = place.parts() if holder else []
    is_ready = bool(endpoints) and _answers(place, endpoints["api"])
    supervisor = [PartState(name="supervisor", state="running", pid=holder, restarts=0)] if holder else []
    shown = [_described(part) for part in (*supervisor, *parts)]
    found: dict[str, Any] = {
        "running": holder is not None,
        "ready": is_ready,
        "pid": holder,
        "dataDir": str(place.path),
        "endpoints": endpoints,
        "parts": shown,
        **(_summary(endpoints["portal"]) if is_ready and "portal" in endpoints else {}),
    }
    if output is Format.TABLE:
        write(_page(found))
    else:
        show(found, output, table=Table(rows=()))
    if not is_ready or any(part.state != "running" for part in parts):
        raise typer.Exit(ExitCode.FAILED)


def _page(found: Mapping[str, Any]) -> str:
    state = "ready" if found["ready"] else "not ready" if found["running"] else f"not running in {found['dataDir']}"
    if not found["running"]:
        return f"Shoal is {state}\n"
    facts: list[tuple[object, ...]] = [("Shoal is", state), *found["endpoints"].items()]
    if "nodes" in found:
        facts.append(("nodes", f"{found['nodes']['ready']} of {found['nodes']['total']} ready"))
        facts.append(("pods", ", ".join(f"{n} {phase}" for phase, n in found["pods"].items()) or "none"))
    facts.append(("memory", f"{sum(part['memoryBytes'] for part in found['parts']) / _MEGABYTE:.0f} MB"))
    rows = [
        (part["name"], part["state"], part["pid"], part["restarts"], f"{part['memoryBytes'] / _MEGABYTE:.0f} MB")
        for part in found["parts"]
    ]
    heading = ("part", "state", "pid", "restarts", "memory")
    return f"{to_table(Table(rows=facts))}\n{to_table(Table(rows=rows, heading=heading))}"


def _described(part: PartState) -> dict[str, Any]:
    return {
        "name": part.name,
        "state": part.state,
        "pid": part.pid,
        "restarts": part.restarts,
        "memoryBytes": _memory(part.pid),
    }


def _memory(pid: int) -> int:
    """A process's share of the memory that it uses (PSS); 0 where the system does not say."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:  # noqa: PTH123 - no path to join
            pss = next(line for line in rollup if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0
    return int(pss.split()[1]) * 1024


def _summary(portal: str) -> dict[str, Any]:
    """How many nodes and pods there are, as the portal's process knows it; nothing where it does not answer."""
    import http.client  # noqa: PLC0415 - other commands do without
    import json  # noqa: PLC0415

    connection = http.client.HTTPConnection(portal.removeprefix("http://"), timeout=ANSWERS_WITHIN)
    try:
        connection.request("GET", "/summary")
        found = json.load(connection.getresponse())
    except (OSError, ValueError, http.client.HTTPException):
        return {}
    finally:
        connection.close()
    return {name: found[name] for name in ("nodes", "pods") if name in found}


def _answers(place: DataDir, server: str) -> bool:
    from shoal.cluster.kubernetes import Unreachable, admin_of  # noqa: PLC0415 - other commands do without

    try:
        return admin_of(place.path, server, timeout=ANSWERS_WITHIN).is_ready()
    except Unreachable:
        return False
