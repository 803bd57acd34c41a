"""``shoal get``: training runs with their progress, and the runtimes they can use."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from shoal.cli.connecting import ContextOption
from shoal.cli.training.clusters import DataDirOption, KubeconfigOption, Place

EXAMPLES = {
    "shoal get trainjobs": "What trains here, and how far it is",
    "shoal get trainjobs -o wide": "And why one does not get on",
    "shoal get trainjobs -w": "See how they change",
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


class GetFormat(enum.StrEnum):
    """How it is printed; wide is a table with the reasons, whatever the terminal's width."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


_SPELLINGS = {
    "trainjob": Kind.TRAIN_JOBS,
    "trainjobs": Kind.TRAIN_JOBS,
    "runtime": Kind.RUNTIMES,
    "runtimes": Kind.RUNTIMES,
}


def get(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"{', '.join(Kind)}.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Only this one.")] = "",
    namespace: NamespaceOption = "",
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Of all namespaces.")] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on, with a row for each change.")] = False,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    data_dir: DataDirOption = None,
    output: Annotated[
        GetFormat, typer.Option("--output", "-o", metavar="FORMAT", help="table, wide (says why, too), json or yaml.")
    ] = GetFormat.TABLE,
    show_managed_fields: Annotated[
        bool, typer.Option("--show-managed-fields", help="Print managedFields in JSON and YAML.")
    ] = False,
) -> None:
    """Show training runs with their progress, or the runtimes that they can use."""
    chosen = _SPELLINGS.get(kind.lower())
    if chosen is None:
        raise typer.BadParameter(f"{kind} is unknown here, choose from {', '.join(Kind)}", param_hint="KIND")
    if name and all_namespaces:
        raise typer.BadParameter("a name is of one namespace: leave one of the two out", param_hint="--all-namespaces")
    if watch and output not in (GetFormat.TABLE, GetFormat.WIDE):
        raise typer.BadParameter("rows can be watched, not documents: leave one of the two out", param_hint="--watch")
    from shoal.cli.processes.loops import run_loop  # noqa: PLC0415 - other commands do without
    from shoal.cli.training.showing import Question, answer  # noqa: PLC0415

    question = Question(
        kind=chosen,
        name=name,
        everywhere=all_namespaces,
        is_watched=watch,
        output=output,
        with_managed_fields=show_managed_fields,
    )
    run_loop(answer(Place(kubeconfig, context, data_dir, namespace), question))
