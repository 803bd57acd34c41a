"""``shoal scheduler``: the scheduler alone, on a cluster that is there, with KAI's flags and configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperGroup

from shoal.cli.connecting import AllowedHostOption, ContextOption, KubeconfigOption, checked_hosts
from shoal.cli.output import write

if TYPE_CHECKING:
    from aiohttp import web

    from shoal.kube import Election
    from shoal.scheduler.configuration import SchedulerOptions

EXAMPLES = {
    "shoal scheduler": "Schedule the pods of kai-scheduler on the cluster of the current kubeconfig",
    "shoal scheduler --scheduler-conf=config.yaml --leader-elect": "Take over KAI's configuration; several may run",
    "shoal scheduler --scheduler-name=kai-scheduler --scheduler-name=volcano": "Schedule for several names",
    "curl -sS http://127.0.0.1:8081/api/v1/visualizer/summary": "See what it sees",
}
SETTINGS: Final = {"allow_extra_args": True, "ignore_unknown_options": True}
"""KAI's flags are read as Go programs read theirs."""

_LEASE, _RENEW, _RETRY = 15.0, 10.0, 5.0


class SchedulerGroup(TyperGroup):
    """Takes KAI's flags as they are, unless the first word is a command of its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the command line; whatever nobody here knows is left for KAI's own reading."""
        is_command = bool(args) and args[0] in self.commands
        ctx.allow_interspersed_args = not is_command
        rest = super().parse_args(ctx, args)
        if not is_command:
            ctx.args, ctx._protected_args = [*ctx._protected_args, *ctx.args], []
        return rest


def scheduler(
    context: typer.Context,
    kubeconfig: KubeconfigOption = None,
    cluster_context: ContextOption = None,
    plugin_server_host: Annotated[
        str, typer.Option("--plugin-server-host", metavar="HOST", help="Where the plugin server listens.")
    ] = "127.0.0.1",
    visualizer_auth: Annotated[
        Path | None,
        typer.Option(
            "--visualizer-auth",
            metavar="FILE",
            help="Bearer tokens for the plugin server, one a line. Otherwise none is needed on a loopback address, "
            "and elsewhere one of the cluster, of a user who may get the path.",
        ),
    ] = None,
    allowed_host: AllowedHostOption = None,
    reservation_image: Annotated[
        str | None,
        typer.Option(
            "--reservation-image",
            metavar="IMAGE",
            help="The image of pods that hold a GPU which others share: on a real cluster KAI's, or one of yours.",
        ),
    ] = None,
    only_scheduler: Annotated[
        bool,
        typer.Option("--only-scheduler", help="Leave out the grouper, the binder and the controllers of queues."),
    ] = False,
    flags: Annotated[bool, typer.Option("--flags", help="List KAI's flags, with what they are otherwise.")] = False,
) -> None:
    """Schedule gangs on a cluster, until SIGTERM or Ctrl-C. Takes all of KAI's flags besides: see --flags.

    Needs the kinds of shoal crds there. The visualizer's API is on the plugin server's port.
    """
    if context.invoked_subcommand is not None:
        return
    if flags:
        write(_listed())
        return
    from shoal.cli.processes.loops import run_loop  # noqa: PLC0415 - other commands do without
    from shoal.cli.scheduling.assembling import add_all, read_setup  # noqa: PLC0415
    from shoal.kube import configure_logs, load_connection  # noqa: PLC0415
    from shoal.scheduler.binding import RESERVATION_IMAGE  # noqa: PLC0415

    setup = read_setup(
        context.args,
        visualizer_auth,
        host=plugin_server_host,
        reservation_image=reservation_image or RESERVATION_IMAGE,
    )
    options, hosts = setup.options, checked_hosts(allowed_host)
    configure_logs(level="debug" if options.verbosity > 3 else "info", as_json=options.log_json)
    connection = load_connection(kubeconfig, cluster_context)

    async def run() -> None:
        from shoal.cli.processes.allowed_hosts import AllowedHosts, refuse_other_hosts  # noqa: PLC0415
        from shoal.kube import HttpTransport, Manager, Settings, run_until_signalled  # noqa: PLC0415
        from shoal.kube.probes import serving  # noqa: PLC0415

        def check_hosts(app: web.Application) -> None:
            if not setup.needs_token:
                refuse_other_hosts(app, AllowedHosts.of(plugin_server_host, hosts))

        manager = Manager(
            HttpTransport(connection),
            name=options.scheduler_names[0],
            election=_election(options),
            settings=Settings(metrics_address=options.listen_address or None),
        )
        try:
            routes = add_all(manager, setup, only_scheduler=only_scheduler).routes
            address = f"{plugin_server_host}:{options.plugin_server_port}"
            async with serving(routes, address, prepare=check_hosts):
                await run_until_signalled(manager)
        finally:
            await manager.client.close()

    run_loop(run())


def _election(options: SchedulerOptions) -> Election | None:
    from shoal.kube import Election  # noqa: PLC0415

    if not options.leader_elect:
        return None
    return Election(
        name=options.scheduler_names[0],
        namespace=options.namespace,
        duration=_LEASE,
        renew_within=_RENEW,
        retry_every=_RETRY,
    )


def _listed() -> str:
    from shoal.scheduler.configuration import FLAGS  # noqa: PLC0415

    lines = []
    for flag in FLAGS.values():
        otherwise = ",".join(flag.default) if isinstance(flag.default, tuple) else flag.default
        shown = f"{otherwise:g}s" if isinstance(otherwise, float) else str(otherwise).lower() or '""'
        lines.append(f"--{flag.name} ({shown})\n    {flag.help}\n")
    return "".join(lines)
