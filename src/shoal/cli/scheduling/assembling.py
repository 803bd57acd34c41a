"""From KAI's flags and configuration file to a scheduler in a manager, with the routes of its plugin server."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import structlog
from aiohttp import web

from shoal.cli.exits import CommandError, ExitCode
from shoal.cli.processes.allowed_hosts import is_loopback
from shoal.cli.scheduling.api_tokens import ApiTokens, behind_tokens
from shoal.kube import Manager
from shoal.scheduler.binding import RESERVATION_IMAGE, BindingSettings, ReservationSettings
from shoal.scheduler.configuration import (
    Configuration,
    ConfigurationError,
    EngineSetup,
    SchedulerOptions,
    configuration_of,
    engine_setup,
    parse_arguments,
    read_configuration,
)
from shoal.scheduler.everything import SchedulerSettings, add_everything, add_scheduler
from shoal.scheduler.explaining import explain_routes
from shoal.scheduler.grouper import GrouperSettings
from shoal.scheduler.plugins import installed_names, load_plugins
from shoal.scheduler.queues import QueueSettings
from shoal.scheduler.shares.usage import BUILT_IN, InvalidUsageSettings, UsageSettings, usage_settings
from shoal.scheduler.snapshots import configuration_document, parameters_of, snapshot_routes, watched_sources
from shoal.scheduler.snapshots.modelling import mirror_settings
from shoal.scheduler.watching.cycles import CycleSettings
from shoal.visualizer import Publisher, bearer_tokens, catch_all, routes, take_short_turns

log = structlog.get_logger("shoal.scheduler")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What was asked of a scheduler, read and checked."""

    options: SchedulerOptions
    configuration: Configuration
    engine: EngineSetup
    tokens: tuple[str, ...]
    """Who may read what the plugin server shows, by tokens of its own."""
    reservations: ReservationSettings
    """The pods that hold GPUs which others share."""
    usage: UsageSettings | None = None
    """Which past of queues counts when they are given their shares."""
    reviews_tokens: bool = False
    """Whether the API server says who may read what the plugin server shows, where it has no tokens of its own."""

    @property
    def needs_token(self) -> bool:
        """Whether nobody reads anything without a token."""
        return bool(self.tokens) or self.reviews_tokens


@dataclass(frozen=True, slots=True)
class PluginServer:
    """What a scheduler answers over HTTP, and the views that it publishes there."""

    routes: list[web.RouteDef]
    publisher: Publisher


def read_setup(
    arguments: Sequence[str],
    visualizer_auth: Path | None = None,
    *,
    host: str,
    reservation_image: str = RESERVATION_IMAGE,
) -> Setup:
    """Reads KAI's flags and the files that they name.

    ``host`` is where the plugin server listens: one that other machines reach answers nobody without a token.
    """
    try:
        options = parse_arguments(arguments)
        configuration = _configuration(options)
        engine = engine_setup(configuration, options)
    except ConfigurationError as error:
        raise CommandError(str(error), code=ExitCode.USAGE) from error
    return Setup(
        options=options,
        configuration=configuration,
        engine=engine,
        tokens=_tokens(visualizer_auth),
        reservations=ReservationSettings(image=reservation_image, app_label=options.resource_reservation_app_label),
        usage=_usage(configuration),
        reviews_tokens=visualizer_auth is None and not is_loopback(host),
    )


def add_all(manager: Manager, setup: Setup, *, only_scheduler: bool = False) -> PluginServer:
    """Adds the scheduler to a manager; gives what its plugin server answers."""
    options, engine = setup.options, setup.engine
    for remark in engine.remarks:
        log.warning(remark)
    mirror = mirror_settings(options, engine)
    publisher = Publisher()
    settings = SchedulerSettings(
        mirror=mirror,
        engine=engine.settings,
        cycles=CycleSettings(
            period=options.schedule_period, actions=engine.actions, plugins=load_plugins(engine.plugins)
        ),
        grouper=GrouperSettings(
            scheduler_names=mirror.grouped,
            queue_label=options.queue_label_key,
            node_pool_label=options.node_pool_label_key,
        ),
        binding=BindingSettings(reservations=setup.reservations),
        queues=QueueSettings(metrics_namespace=options.metrics_namespace),
        metrics_namespace=options.metrics_namespace,
        usage=setup.usage,
    )
    sources = watched_sources(manager, reads_zones=mirror.reads_zones)
    added = (add_scheduler if only_scheduler else add_everything)(manager, settings, publisher.publish)
    auth = bearer_tokens(setup.tokens) if setup.tokens else None
    take_short_turns()
    answers = [
        *routes(publisher, auth),
        *explain_routes(added.questions, task_of=added.mirror.task, pod_of=added.mirror.pod, accepts=auth),
        *snapshot_routes(
            sources,
            added.questions,
            config=configuration_document(setup.configuration),
            parameters=parameters_of(options),
            accepts=auth,
        ),
        catch_all(),
    ]
    if setup.reviews_tokens:
        answers = behind_tokens(answers, ApiTokens(manager.client))
    return PluginServer(answers, publisher)


def _configuration(options: SchedulerOptions) -> Configuration:
    if not options.scheduler_conf:
        return configuration_of({}, source="the built-in configuration")
    file = Path(options.scheduler_conf)
    try:
        return read_configuration(file.read_bytes(), source=str(file), third_party=installed_names())
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise CommandError(
            f"--scheduler-conf {file}: {why}: name a file that can be read", code=ExitCode.USAGE
        ) from error


def remembering(setup: Setup, directory: Path) -> Setup:
    """The same, with a place for what the scheduler itself remembers of the past, where none was named."""
    usage = setup.usage
    if usage is None or usage.client_type != BUILT_IN or usage.directory is not None:
        return setup
    return replace(setup, usage=replace(usage, directory=directory))


def _usage(configuration: Configuration) -> UsageSettings | None:
    if configuration.usage is None:
        return None
    try:
        return usage_settings(configuration.usage, environment=os.environ, now=time.time())
    except InvalidUsageSettings as error:
        raise CommandError(f"{configuration.source}: usageDBConfig: {error}", code=ExitCode.USAGE) from error


def _tokens(file: Path | None) -> tuple[str, ...]:
    if file is None:
        return ()
    try:
        found = tuple(line.strip() for line in file.read_text().splitlines() if line.strip())
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise CommandError(f"--visualizer-auth {file}: {why}: name a file with tokens", code=ExitCode.USAGE) from error
    if not found:
        raise CommandError(f"--visualizer-auth {file}: holds no token: write one a line", code=ExitCode.USAGE)
    return found
