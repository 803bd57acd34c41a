"""The shoal command as a whole: its options, and the list of its subcommands.

A subcommand is a function in a module of its own, beside ``EXAMPLES`` for its help; it is added below by one line. Its
module imports what it runs inside the function, since every start of the command imports all of these modules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from shoal import __version__
from shoal.cli import (
    apiserver,
    crds,
    demo,
    down,
    operator,
    output,
    scheduler,
    scheduling,
    status,
    training,
    up,
    version,
    webhooks,
)

SETTING_UP = "Setting up a cluster"
ON_KUBERNETES = "On a Kubernetes cluster"
ABOUT = "About Shoal"

EXAMPLES = {
    "shoal up": "Start Shoal on this machine",
    "shoal crds | kubectl apply --server-side -f -": "Install Shoal's kinds",
    "shoal up --help": "See what a command can do",
}


def _examples(examples: Mapping[str, str]) -> str:
    """Each example under what it does."""
    lines = [f"[dim]{purpose}:[/]\n  [cyan]{command}[/]" for command, purpose in examples.items()]
    return "\n".join(["[bold]Examples[/]", *lines])


app = typer.Typer(
    name="shoal",
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        output.write(f"shoal {__version__}\n")
        raise typer.Exit


@app.callback(invoke_without_command=True, epilog=_examples(EXAMPLES))
def shoal(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; or set SHOAL_DEBUG=1.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """A GPU cluster's control plane: gangs, training, Slurm, queues, a scheduler and a portal.

    Exit codes: 0 ok, 1 failed, 2 usage, 3 cancelled, 4 API refused, 5 system.
    """
    if context.invoked_subcommand is None:
        output.write(context.get_help())  # which prints by itself, and leaves nothing, where the terminal is rich


def _add(command: Callable[..., Any], *, panel: str, examples: Mapping[str, str]) -> None:
    app.command(rich_help_panel=panel, epilog=_examples(examples))(command)


def _add_scheduler() -> None:
    """A command that is a group too: `shoal scheduler` runs it, `shoal scheduler replay` looks at what it did."""
    group = typer.Typer(rich_markup_mode="rich", context_settings={"help_option_names": ["-h", "--help"]})
    group.callback(
        cls=scheduler.SchedulerGroup,
        invoke_without_command=True,
        epilog=_examples(scheduler.EXAMPLES),
        context_settings=dict(scheduler.SETTINGS),
    )(scheduler.scheduler)
    group.command(epilog=_examples(scheduling.REPLAY_EXAMPLES))(scheduling.replay)
    app.add_typer(group, name="scheduler", rich_help_panel=ON_KUBERNETES)


def _add_runtimes() -> None:
    group = typer.Typer(rich_markup_mode="rich", context_settings={"help_option_names": ["-h", "--help"]})
    examples = _examples({**training.LIST_EXAMPLES, **training.INSTALL_EXAMPLES})
    group.callback(invoke_without_command=True, epilog=examples)(training.runtimes_alone)
    group.command("list", epilog=_examples(training.LIST_EXAMPLES))(training.list_runtimes)
    group.command("install", epilog=_examples(training.INSTALL_EXAMPLES))(training.install_runtimes)
    app.add_typer(group, name="runtimes", rich_help_panel=ON_KUBERNETES)


_add(up.up, panel=SETTING_UP, examples=up.EXAMPLES)
_add(down.down, panel=SETTING_UP, examples=down.EXAMPLES)
_add(status.status, panel=SETTING_UP, examples=status.EXAMPLES)
_add(demo.demo, panel=SETTING_UP, examples=demo.EXAMPLES)
_add(apiserver.apiserver, panel=SETTING_UP, examples=apiserver.EXAMPLES)
_add(crds.crds, panel=SETTING_UP, examples=crds.EXAMPLES)
_add(operator.operator, panel=ON_KUBERNETES, examples=operator.EXAMPLES)
_add_scheduler()
_add(scheduling.explain, panel=ON_KUBERNETES, examples=scheduling.EXPLAIN_EXAMPLES)
_add(training.get, panel=ON_KUBERNETES, examples=training.GET_EXAMPLES)
_add(training.logs, panel=ON_KUBERNETES, examples=training.LOGS_EXAMPLES)
_add_runtimes()
_add(webhooks.webhooks, panel=ON_KUBERNETES, examples=webhooks.EXAMPLES)
_add(version.version, panel=ABOUT, examples=version.EXAMPLES)
