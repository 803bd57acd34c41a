"""``shoal logs``: what the nodes of a training run print, by their rank."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli.connecting import ContextOption
from shoal.cli.training.clusters import DataDirOption, KubeconfigOption, Place
from shoal.cli.training.getting import NamespaceOption

EXAMPLES = {
    "shoal logs trainjob/llama": "What all nodes printed so far",
    "shoal logs trainjob/llama --rank 3 -f": "Follow one of them until the run ends, through restarts",
    "shoal logs trainjob/llama --step dataset-initializer": "What an initializer printed",
}

_SPELLINGS = ("trainjob", "trainjobs")


def logs(
    what: Annotated[str, typer.Argument(metavar="trainjob/NAME", help="Whose logs.")],
    rank: Annotated[str | None, typer.Option("--rank", "-r", metavar="N", help="Only this node, from 0.")] = None,
    step: Annotated[
        str,
        typer.Option("--step", metavar="NAME", help="Another step, such as dataset-initializer."),
    ] = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run ends.")] = False,
    tail: Annotated[str | None, typer.Option("--tail", metavar="N", help="Only the last lines so far.")] = None,
    timestamps: Annotated[bool, typer.Option("--timestamps", help="Say when each line was printed.")] = False,
    namespace: NamespaceOption = "",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Print what the nodes of a training run say. Lines of several nodes begin with whose they are."""
    kind, _, name = what.partition("/")
    if kind.lower() not in _SPELLINGS or not name:
        raise typer.BadParameter(f"{what} is no training run: write trainjob/NAME", param_hint="trainjob/NAME")
    if rank is not None and step:
        raise typer.BadParameter("a step has no ranks: leave one of the two out", param_hint="--rank")
    counts = _whole(rank, "--rank", "a node's rank, such as 0"), _whole(tail, "--tail", "how many lines, such as 10")
    from shoal.cli.processes.loops import run_loop  # noqa: PLC0415 - other commands do without
    from shoal.cli.training.choosing import Choice  # noqa: PLC0415
    from shoal.cli.training.reading import print_logs  # noqa: PLC0415

    choice = Choice(name=name, rank=counts[0], step=step, tail=counts[1], timestamps=timestamps)
    run_loop(print_logs(Place(kubeconfig, context, data_dir, namespace), choice, follow=follow))


def _whole(given: str | None, option: str, wanted: str) -> int | None:
    """A number from zero on; the types of options would say in their own words what is wrong with another."""
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal()):
        raise typer.BadParameter(f"{given} is not {wanted}", param_hint=option)
    return int(given)
