"""KAI's flags, each with its default, as one typed object; and the few that Shoal adds.

Values are written as Go programs take them: ``--name=value`` or ``--name value``, ``--name`` alone for yes, durations
such as ``1m30s``. A flag that has no meaning here is accepted, so that a Deployment's arguments work as they are, and
named in ``ignored``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from shoal.api import kai_names as names
from shoal.api.meta.duration import InvalidDuration, parse_duration
from shoal.scheduler.configuration.problems import ConfigurationError

_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
_FALSE: Final = ("0", "f", "F", "false", "FALSE", "False")
COMMAND_LINE: Final = "the command line"


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: what its value is called in `SchedulerOptions`, what it is when nobody gives it, and what it is for."""

    name: str
    field: str
    default: Any
    help: str
    is_ignored: bool = False

    @property
    def is_switch(self) -> bool:
        """Whether it may stand without a value."""
        return isinstance(self.default, bool)


def _flag(name: str, default: Any, text: str, *, is_ignored: bool = False) -> Any:
    return field(default=default, metadata={"name": name, "help": text, "is_ignored": is_ignored})


def _ignored(name: str, default: Any) -> Any:
    return _flag(name, default, "Accepted for KAI's sake; without effect here.", is_ignored=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerOptions:
    """Everything that flags say. Durations are in seconds."""

    scheduler_names: tuple[str, ...] = _flag(
        "scheduler-name", (names.SCHEDULER,), "The schedulerName of the pods to place; may be repeated."
    )
    gangs_only: tuple[str, ...] = _flag(
        "gangs-only", (), "A schedulerName of which another scheduler takes the pods in no Workload; may be repeated."
    )
    namespace: str = _flag("namespace", names.NAMESPACE, "The scheduler's own namespace.")
    scheduler_conf: str = _flag("scheduler-conf", "", "The configuration file; without one, the built-in defaults.")
    schedule_period: float = _flag("schedule-period", 1.0, "From the start of one cycle to that of the next.")
    listen_address: str = _flag("listen-address", ":8080", "Where /metrics is served.")
    plugin_server_port: int = _flag("plugin-server-port", 8081, "The port of the plugin server and the visualizer.")
    leader_elect: bool = _flag("leader-elect", False, "Work only while holding a lease, so that several may run.")
    partition_label_value: str = _flag(
        "partition-label-value", "", "The node pool that is scheduled; empty, whatever is in no node pool."
    )
    node_pool_label_key: str = _flag("nodepool-label-key", names.NODE_POOL, "The label that names a node pool.")
    queue_label_key: str = _flag("queue-label-key", names.QUEUE, "The label that names a queue.")
    metrics_namespace: str = _flag("metrics-namespace", "kai", "The prefix of all metrics.")
    resource_reservation_app_label: str = _flag(
        "resource-reservation-app-label", names.RESERVATION_NAMESPACE, "The label app of pods that reserve GPUs."
    )
    restrict_node_scheduling: bool = _flag(
        "restrict-node-scheduling", False, "Place GPU pods on GPU workers alone, all others on CPU workers alone."
    )
    cpu_worker_label: str = _flag("cpu-worker-node-label-key", names.CPU_WORKER, "The label of CPU workers.")
    gpu_worker_label: str = _flag("gpu-worker-node-label-key", names.GPU_WORKER, "The label of GPU workers.")
    mig_worker_label: str = _flag("mig-worker-node-label-key", names.MIG_WORKER, "The label of nodes with MIG.")
    max_consolidation_preemptees: int = _flag(
        "max-consolidation-preemptees", 16, "How many jobs one consolidation may move; -1: any number."
    )
    full_hierarchy_fairness: bool = _flag(
        "full-hierarchy-fairness", True, "Divide fairly on every level of queues, not among the lowest alone."
    )
    allow_consolidating_reclaim: bool = _flag(
        "allow-consolidating-reclaim", True, "Do not count a victim that finds another place at once."
    )
    use_scheduling_signatures: bool = _flag(
        "use-scheduling-signatures", True, "Do not look for victims for a job just like one that found none."
    )
    default_staleness_grace_period: float = _flag(
        "default-staleness-grace-period", 60.0, "How long a gang may lack members before it ends; negative: forever."
    )
    stuck_in_releasing_threshold: float = _flag(
        "stuck-in-releasing-threshold", 120.0, "How long a pod may take to end before nothing is promised of it."
    )
    detailed_fit_errors: bool = _flag("detailed-fit-errors", False, "Say for every node why a pod does not fit.")
    update_pod_eviction_condition: bool = _flag(
        "update-pod-eviction-condition", False, "Write the condition DisruptionTarget before a pod is evicted."
    )
    schedule_csi_storage: bool = _flag("schedule-csi-storage", False, "Look at the storage that volumes ask for.")
    qps: int = _flag("qps", 50, "Requests to the API server per second.")
    burst: int = _flag("burst", 300, "Requests to the API server at once.")
    verbosity: int = _flag("v", 3, "How much is logged; from 4 on, what helps in the search for faults.")
    log_json: bool = _flag("log-json", False, "Write logs as JSON.")
    reserve_for_large_gangs: bool = _flag(
        "reserve-for-large-gangs", False, "Keep nodes for the first gang that finds no room (not in KAI)."
    )
    status_workers: int = _ignored("num-of-status-recording-workers", 5)
    log_flush_frequency: float = _ignored("log-flush-frequency", 5.0)
    enable_profiler: bool = _ignored("enable-profiler", False)
    profiler_port: str = _ignored("profiler-port", "8182")
    pyroscope_address: str = _ignored("pyroscope-address", "")
    pyroscope_mutex_rate: int = _ignored("pyroscope-mutex-profiler-rate", 5)
    pyroscope_block_rate: int = _ignored("pyroscope-block-profiler-rate", 5)
    feature_gates: str = _ignored("feature-gates", "")
    ignored: tuple[str, ...] = ()
    """Flags that were given and have no effect here: to be told once."""


FLAGS: Final[Mapping[str, Flag]] = {
    one.metadata["name"]: Flag(
        one.metadata["name"], one.name, one.default, one.metadata["help"], one.metadata["is_ignored"]
    )
    for one in fields(SchedulerOptions)
    if one.metadata
}
"""All flags by name."""

_RANGES: Final[Mapping[str, tuple[float, float, str]]] = {
    "plugin-server-port": (0, 65535, "a port, 0 for any free one"),
    "max-consolidation-preemptees": (-1, float("inf"), "-1 (any number) or more"),
    "schedule-period": (1e-9, float("inf"), "more than 0"),
    "stuck-in-releasing-threshold": (0, float("inf"), "0 or more"),
    "qps": (1, float("inf"), "1 or more"),
    "burst": (1, float("inf"), "1 or more"),
}


def parse_arguments(arguments: Sequence[str], *, base: SchedulerOptions | None = None) -> SchedulerOptions:
    """The options of a command line, without the program's name; raises ConfigurationError."""
    values: dict[str, list[str]] = {}
    for name, value in _split(arguments):
        values.setdefault(name, []).append(value)
    return _options(values, base or SchedulerOptions(), COMMAND_LINE)


def options_of(values: Mapping[str, str], *, source: str, base: SchedulerOptions | None = None) -> SchedulerOptions:
    """The options that these flags say, by name; those that nobody knows are left out. Raises ConfigurationError."""
    known = {name: [value] for name, value in values.items() if name in FLAGS}
    return _options(known, base or SchedulerOptions(), source)


def _split(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    left = iter(arguments)
    for argument in left:
        name, has_value, value = argument.lstrip("-").partition("=")
        is_flag = argument.startswith("--") or argument.partition("=")[0] == "-v"
        flag = FLAGS.get(name) if is_flag else None
        if flag is None:
            raise ConfigurationError(COMMAND_LINE, argument.partition("=")[0], "is not known: see --help for all flags")
        if has_value:
            yield name, value
        elif flag.is_switch:
            yield name, "true"
        else:
            following = next(left, None)
            if following is None:
                raise ConfigurationError(COMMAND_LINE, f"--{name}", f"has no value: write --{name}=VALUE")
            yield name, following


def _options(values: Mapping[str, Sequence[str]], base: SchedulerOptions, source: str) -> SchedulerOptions:
    """Of a flag that is given more than once the last value counts, unless it may be repeated."""
    changes: dict[str, Any] = {}
    for name, given in values.items():
        flag = FLAGS[name]
        if isinstance(flag.default, tuple):
            changes[flag.field] = tuple(dict.fromkeys(given))
        else:
            changes[flag.field] = _value(flag, given[-1], source)
    told = tuple(sorted({*base.ignored, *(name for name in values if FLAGS[name].is_ignored)}))
    return replace(base, **changes, ignored=told)


def _value(flag: Flag, text: str, source: str) -> Any:
    value = _typed(flag, text, source)
    least, most, wanted = _RANGES.get(flag.name, (-float("inf"), float("inf"), ""))
    if wanted and not least <= value <= most:
        raise ConfigurationError(source, f"--{flag.name}", f"is {text}: write {wanted}")
    return value


def _typed(flag: Flag, text: str, source: str) -> Any:
    """A text as what the flag's default is; the only numbers with a fraction are durations."""
    wanted = "a duration such as 1s or 1m30s"
    try:
        match flag.default:
            case bool():
                wanted = "true or false"
                return {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}[text]
            case int():
                wanted = "a whole number"
                return int(text, 10)
            case float():
                return parse_duration(text).seconds
            case _:
                return text
    except (KeyError, ValueError, InvalidDuration):
        raise ConfigurationError(source, f"--{flag.name}", f'is "{text}": write {wanted}') from None
