"""``shoal get``: training runs with their progress, and the runtimes they can use."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.connecting import ContextOption, KubeconfigOption
from shoal.cli.exits import CommandError
from shoal.cli.output import Format, Table, show, write
from shoal.cli.up import DATA_DIR, DataDirOption

if TYPE_CHECKING:
    from shoal.cli.training.clusters import Place

EXAMPLES = {
    "shoal get trainjobs": "What trains here, and how far it is",
    "shoal get trainjobs -A -o json": "Everywhere, for a script",
    "shoal get trainjob llama -n research": "One of them",
    "shoal get runtimes": "What can be trained with",
}

NamespaceOption = Annotated[
    str, typer.Option("--namespace", "-n", metavar="NAME", help="Where it is; the kubeconfig's by default.")
]


class Kind(enum.StrEnum):
    """What can be asked for."""

    TRAIN_JOBS = "trainjobs"
    RUNTIMES = "runtimes"


_SPELLINGS = {
    "trainjob": Kind.TRAIN_JOBS,
    "trainjobs": Kind.TRAIN_JOBS,
    "runtime": Kind.RUNTIMES,
    "runtimes": Kind.RUNTIMES,
}


def get(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"{', '.join(Kind)}.")],
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Only this one.")] = "",
    namespace: NamespaceOption = "",
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Of all namespaces.")] = False,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    data_dir: DataDirOption = DATA_DIR,
    output: Annotated[Format, typer.Option("--output", "-o", help="How to print.")] = Format.TABLE,
) -> None:
    """Show training runs with their progress, or the runtimes that they can use."""
    chosen = _SPELLINGS.get(kind.lower())
    if chosen is None:
        raise typer.BadParameter(f"{kind} is unknown here, choose from {', '.join(Kind)}", param_hint="KIND")
    if name and all_namespaces:
        raise typer.BadParameter("a name is of one namespace: leave one of the two out", param_hint="--all-namespaces")
    from shoal.cli.processes.loops import run_loop  # noqa: PLC0415 - other commands do without
    from shoal.cli.training.clusters import Place  # noqa: PLC0415

    place = Place(kubeconfig, context, data_dir, namespace)
    read = _train_jobs if chosen is Kind.TRAIN_JOBS else _runtimes
    run_loop(_show(read, place, name, output, everywhere=all_namespaces))


async def _show(read: Any, place: Place, name: str, output: Format, *, everywhere: bool) -> None:
    async with place.client() as (client, namespace):
        objects, table = await read(client, "" if everywhere else namespace)
    if name:
        keep = [index for index, one in enumerate(objects) if one["metadata"]["name"] == name]
        if not keep:
            raise CommandError(f"there is no {name} in {namespace}")
        objects, table = [objects[index] for index in keep], Table([table.rows[index] for index in keep], table.heading)
    elif not objects and output is Format.TABLE:
        write(f"nothing found{'' if everywhere else f' in {namespace}'}\n")
        return
    show(objects[0] if name else {"apiVersion": "v1", "kind": "List", "items": objects}, output, table=table)


async def _train_jobs(client: Any, namespace: str) -> tuple[list[dict[str, Any]], Table]:
    from datetime import UTC, datetime  # noqa: PLC0415

    from shoal.api.trainer import TRAIN_JOBS  # noqa: PLC0415
    from shoal.cli.training.pages import train_jobs_table  # noqa: PLC0415

    documents = await _listed(client, TRAIN_JOBS, namespace)
    jobs = [TRAIN_JOBS.decode(_encoded(one)) for one in documents]
    return documents, train_jobs_table(jobs, datetime.now(UTC), with_namespace=not namespace)


async def _runtimes(client: Any, namespace: str) -> tuple[list[dict[str, Any]], Table]:
    from shoal.api.trainer import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES  # noqa: PLC0415
    from shoal.cli.training.pages import runtimes_table  # noqa: PLC0415

    of_cluster = await _listed(client, CLUSTER_TRAINING_RUNTIMES, "")
    of_namespace = await _listed(client, TRAINING_RUNTIMES, namespace)
    typed = [CLUSTER_TRAINING_RUNTIMES.decode(_encoded(one)) for one in of_cluster]
    more = [TRAINING_RUNTIMES.decode(_encoded(one)) for one in of_namespace]
    return [*of_cluster, *of_namespace], runtimes_table([*typed, *more])


async def _listed(client: Any, resource: Any, namespace: str) -> list[dict[str, Any]]:
    """The objects as the server has them, by namespace and name, each with what it is."""
    found = (await client.list(resource.documents(), namespace)).items
    marks = {"apiVersion": resource.api_version, "kind": resource.kind}
    ordered = sorted(found, key=lambda one: (one.metadata.namespace, one.metadata.name))
    return [marks | one.content for one in ordered]


def _encoded(document: dict[str, Any]) -> bytes:
    import msgspec  # noqa: PLC0415

    return msgspec.json.encode(document)
