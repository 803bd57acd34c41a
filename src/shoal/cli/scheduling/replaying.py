"""``shoal scheduler replay``: what a scheduler decides upon a snapshot, and what would be otherwise if …"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.exits import CommandError, ExitCode
from shoal.cli.output import Format, Table, show, write

if TYPE_CHECKING:
    from shoal.scheduler.snapshots import Snapshot

EXAMPLES = {
    "curl -sSO -J http://127.0.0.1:8081/get-snapshot": "Take a snapshot of a running scheduler",
    "shoal scheduler replay snapshot.zip": "See what a cycle decides upon it, and why the others wait",
    "shoal scheduler replay snapshot.zip --add-nodes 10xH100": "See what ten more nodes would change",
    "shoal scheduler replay snapshot.zip --set-quota team-a=64 --submit job.yaml": "Try a quota, and a job",
}

_USUAL_GPUS = 8
_MODEL_ALONE = re.compile(r"([0-9]+)[xX×]([A-Za-z].*)")


def replay(
    snapshot: Annotated[Path, typer.Argument(metavar="SNAPSHOT", help="What /get-snapshot gave, of Shoal or of KAI.")],
    actions: Annotated[
        str | None, typer.Option("--actions", metavar="NAMES", help="Run these, with commas; otherwise its own.")
    ] = None,
    add_nodes: Annotated[
        list[str] | None,
        typer.Option("--add-nodes", metavar="SHAPE", help="What if: more nodes, as 10xH100 or 4x8:A100; repeatable."),
    ] = None,
    set_quota: Annotated[
        list[str] | None,
        typer.Option("--set-quota", metavar="QUEUE=N", help="What if: GPUs, or QUEUE.cpu=64, QUEUE.memory=1Ti."),
    ] = None,
    set_limit: Annotated[
        list[str] | None,
        typer.Option("--set-limit", metavar="QUEUE=N", help="What if: the same for limits; also unlimited."),
    ] = None,
    submit: Annotated[
        list[Path] | None,
        typer.Option("--submit", metavar="FILE", help="What if: a PodGroup with Pods, or a Job; repeatable."),
    ] = None,
    output: Annotated[Format, typer.Option("--output", "-o", help="How to print.")] = Format.TABLE,
) -> None:
    """Print what the scheduler decides upon a snapshot: places, evictions, and why the others wait.

    With a what-if it is run twice, and what would change is printed. Nothing is asked of a cluster.
    """
    import msgspec  # noqa: PLC0415 - other commands do without

    from shoal.cli.scheduling.pages import difference_page, replay_page  # noqa: PLC0415
    from shoal.scheduler.configuration import ConfigurationError  # noqa: PLC0415
    from shoal.scheduler.replaying import InvalidChange, difference  # noqa: PLC0415
    from shoal.scheduler.replaying import replay as run  # noqa: PLC0415

    found = _read(snapshot)
    chosen = _actions(actions)
    try:
        changed = _changed(found, add_nodes or [], set_quota or [], set_limit or [], submit or [])
        before = run(found, actions=chosen)
        after = None if changed is found else run(changed, actions=chosen)
    except InvalidChange as error:
        raise CommandError(str(error), code=ExitCode.USAGE) from error
    except ConfigurationError as error:
        raise CommandError(f"{snapshot}: {error}") from error
    if after is None:
        told: Any = msgspec.to_builtins(before)
        page = replay_page(before)
    else:
        changes = difference(before, after)
        told = msgspec.to_builtins({"before": before, "after": after, "difference": changes})
        page = difference_page(changes, after)
    if output is Format.TABLE:
        write(page)
    else:
        show(told, output, table=Table(rows=()))


def _read(file: Path) -> Snapshot:
    from shoal.scheduler.snapshots import InvalidSnapshot, read_snapshot  # noqa: PLC0415

    try:
        return read_snapshot(file.read_bytes())
    except InvalidSnapshot as error:
        raise CommandError(f"{file}: {error}", code=ExitCode.USAGE) from error
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise CommandError(f"{file}: {why}: name a snapshot that can be read", code=ExitCode.USAGE) from error


def _actions(text: str | None) -> list[str] | None:
    from shoal.scheduler.session.settings import ACTIONS  # noqa: PLC0415

    if text is None:
        return None
    chosen = [name.strip() for name in text.split(",") if name.strip()]
    for name in chosen:
        if name not in ACTIONS:
            raise typer.BadParameter(f"{name} is no action: there are {', '.join(ACTIONS)}", param_hint="--actions")
    return chosen


def _changed(
    found: Snapshot, add_nodes: list[str], quotas: list[str], limits: list[str], files: list[Path]
) -> Snapshot:
    """The snapshot with all what-ifs; itself where there are none."""
    from shoal.scheduler.replaying import with_bound, with_nodes, with_submitted  # noqa: PLC0415

    for place, shape in enumerate(add_nodes):
        found = with_nodes(found, _nodes(place, shape, found))
    for option, bound, given in (("--set-quota", "quota", quotas), ("--set-limit", "limit", limits)):
        for text in given:
            queue, resource, amount = _setting(text, option)
            found = with_bound(found, queue, resource, amount, bound=bound)
    for file in files:
        found = with_submitted(found, _documents(file))
    return found


def _setting(text: str, option: str) -> tuple[str, str, str]:
    """``team-a=64`` is about GPUs, ``team-a.cpu=64`` about cores."""
    name, has_amount, amount = text.partition("=")
    queue, _, resource = name.rpartition(".")
    if resource not in ("gpu", "cpu", "memory"):
        queue, resource = name, "gpu"
    if not (queue and has_amount and amount):
        raise typer.BadParameter(f"{text} is no setting: write QUEUE=64 or QUEUE.cpu=64", param_hint=option)
    return queue, resource, amount


def _nodes(place: int, shape: str, found: Snapshot) -> list[dict[str, Any]]:
    """New nodes as they would register themselves, in the snapshot's node pool."""
    from shoal.cluster.node.simulated.pools import InvalidPool, Pool, node_labels, node_names, node_resources  # noqa: PLC0415
    from shoal.scheduler.snapshots.parameters import options_of_parameters  # noqa: PLC0415

    model = _MODEL_ALONE.fullmatch(shape.strip())
    try:
        pool = Pool.parse(f"{model[1]}x{_USUAL_GPUS}:{model[2]}" if model else shape)
    except InvalidPool as error:
        raise typer.BadParameter(str(error), param_hint="--add-nodes") from error
    options = options_of_parameters(found.parameters)
    pool_labels = {options.node_pool_label_key: options.partition_label_value} if options.partition_label_value else {}
    resources = node_resources(pool)
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"added-{name.removeprefix('sim-')}",
                "labels": node_labels(f"added-{name.removeprefix('sim-')}", place, pool) | pool_labels,
            },
            "status": {
                "capacity": resources,
                "allocatable": resources,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for name in node_names(place, pool)
    ]


def _documents(file: Path) -> list[Any]:
    import yaml  # noqa: PLC0415

    try:
        return list(yaml.safe_load_all(file.read_text()))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise CommandError(f"--submit {file}: {why}: name a file that can be read", code=ExitCode.USAGE) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        problem = " ".join(str(error).split())
        raise CommandError(f"--submit {file}: is no YAML: {problem}", code=ExitCode.USAGE) from error
