"""``shoal status``: whether Shoal runs in a data dir, and how its parts are."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from shoal.cli.data_dir import DataDir
from shoal.cli.exits import ExitCode
from shoal.cli.output import Format, Table, show
from shoal.cli.up import DATA_DIR, DataDirOption

EXAMPLES = {
    "shoal status": "See whether it is up",
    "shoal status -o json": "Ask from a script; the exit code is 0 only where all is well",
}

ANSWERS_WITHIN = 5.0


def status(
    data_dir: DataDirOption = DATA_DIR,
    output: Annotated[Format, typer.Option("--output", "-o", help="How to print.")] = Format.TABLE,
) -> None:
    """Say whether Shoal runs in a data dir, where it answers, and how its parts are.

    The exit code is 0 where it is ready and every part runs, otherwise 1.
    """
    place = DataDir(data_dir)
    holder = place.holder()
    endpoints = place.endpoints() if holder else {}
    parts = place.parts() if holder else []
    is_ready = bool(endpoints) and _answers(place, endpoints["api"])
    found: dict[str, Any] = {
        "running": holder is not None,
        "ready": is_ready,
        "pid": holder,
        "dataDir": str(place.path),
        "endpoints": endpoints,
        "parts": [{"name": one.name, "state": one.state, "pid": one.pid, "restarts": one.restarts} for one in parts],
    }
    state = "ready" if is_ready else "not ready" if holder else f"not running in {place.path}"
    rows: list[tuple[object, ...]] = [("shoal", state, holder or "", "", endpoints.get("api", ""))]
    rows += [(one.name, one.state, one.pid, one.restarts, "") for one in parts]
    show(found, output, table=Table(rows=rows, heading=("part", "state", "pid", "restarts", "address")))
    if not is_ready or any(one.state != "running" for one in parts):
        raise typer.Exit(ExitCode.FAILED)


def _answers(place: DataDir, server: str) -> bool:
    from shoal.cluster.kubernetes import Unreachable, admin_of  # noqa: PLC0415 - other commands do without

    try:
        return admin_of(place.path, server, timeout=ANSWERS_WITHIN).is_ready()
    except Unreachable:
        return False
