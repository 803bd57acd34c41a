"""KAI's flags: their defaults, how they are written, and what is said of a wrong one."""

from __future__ import annotations

import pytest

from shoal.scheduler.configuration import FLAGS, ConfigurationError, SchedulerOptions, options_of, parse_arguments

DEFAULTS = {
    "scheduler-name": ("kai-scheduler",),
    "namespace": "kai-scheduler",
    "scheduler-conf": "",
    "schedule-period": 1.0,
    "listen-address": ":8080",
    "plugin-server-port": 8081,
    "leader-elect": False,
    "partition-label-value": "",
    "nodepool-label-key": "kai.scheduler/node-pool",
    "queue-label-key": "kai.scheduler/queue",
    "metrics-namespace": "kai",
    "resource-reservation-app-label": "kai-resource-reservation",
    "restrict-node-scheduling": False,
    "cpu-worker-node-label-key": "node-role.kubernetes.io/cpu-worker",
    "gpu-worker-node-label-key": "node-role.kubernetes.io/gpu-worker",
    "mig-worker-node-label-key": "node-role.kubernetes.io/mig-enabled",
    "max-consolidation-preemptees": 16,
    "full-hierarchy-fairness": True,
    "allow-consolidating-reclaim": True,
    "use-scheduling-signatures": True,
    "default-staleness-grace-period": 60.0,
    "stuck-in-releasing-threshold": 120.0,
    "num-of-status-recording-workers": 5,
    "detailed-fit-errors": False,
    "update-pod-eviction-condition": False,
    "schedule-csi-storage": False,
    "qps": 50,
    "burst": 300,
    "v": 3,
    "log-json": False,
    "log-flush-frequency": 5.0,
    "enable-profiler": False,
    "profiler-port": "8182",
    "pyroscope-address": "",
    "pyroscope-mutex-profiler-rate": 5,
    "pyroscope-block-profiler-rate": 5,
}


@pytest.mark.parametrize(("name", "default"), DEFAULTS.items(), ids=DEFAULTS.keys())
def test_every_flag_of_kai_has_its_default(name: str, default: object) -> None:
    assert getattr(SchedulerOptions(), FLAGS[name].field) == default


@pytest.mark.parametrize(
    ("arguments", "field", "value"),
    [
        (["--schedule-period=1m30s"], "schedule_period", 90.0),
        (["--schedule-period", "500ms"], "schedule_period", 0.5),
        (["--default-staleness-grace-period=-1s"], "default_staleness_grace_period", -1.0),
        (["--leader-elect"], "leader_elect", True),
        (["--full-hierarchy-fairness=false"], "full_hierarchy_fairness", False),
        (["--full-hierarchy-fairness=F"], "full_hierarchy_fairness", False),
        (["--max-consolidation-preemptees=-1"], "max_consolidation_preemptees", -1),
        (["--qps=10", "--qps=20"], "qps", 20),
        (["-v", "5"], "verbosity", 5),
        (["--v=5"], "verbosity", 5),
        (["--partition-label-value="], "partition_label_value", ""),
        (["--scheduler-conf", "/etc/conf=1.yaml"], "scheduler_conf", "/etc/conf=1.yaml"),
        (["--scheduler-name=a", "--scheduler-name=b", "--scheduler-name=a"], "scheduler_names", ("a", "b")),
        (["--reserve-for-large-gangs"], "reserve_for_large_gangs", True),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_flags_are_written_as_go_takes_them(arguments: list[str], field: str, value: object) -> None:
    assert getattr(parse_arguments(arguments), field) == value


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--schedule-periods=1s"], "--schedule-periods is not known"),
        (["schedule-period=1s"], "schedule-period is not known"),
        (["--qps"], "--qps has no value: write --qps=VALUE"),
        (["--qps=many"], '--qps is "many": write a whole number'),
        (["--leader-elect=maybe"], '--leader-elect is "maybe": write true or false'),
        (["--schedule-period=1"], '--schedule-period is "1": write a duration such as 1s or 1m30s'),
        (["--schedule-period=0s"], "--schedule-period is 0s: write more than 0"),
        (["--plugin-server-port=70000"], "--plugin-server-port is 70000: write a port"),
        (["--max-consolidation-preemptees=-2"], "--max-consolidation-preemptees is -2"),
        (["--leader-elect", "false"], "false is not known"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_flag_is_told_in_one_sentence(arguments: list[str], said: str) -> None:
    with pytest.raises(ConfigurationError) as told:
        parse_arguments(arguments)
    assert str(told.value).startswith(f"the command line: {said}")


def test_flags_without_meaning_here_are_accepted_and_named() -> None:
    found = parse_arguments(["--pyroscope-address=http://p", "--enable-profiler", "--qps=5", "--feature-gates=A=true"])
    assert found.ignored == ("enable-profiler", "feature-gates", "pyroscope-address")


def test_flags_by_name_leave_out_what_nobody_knows_and_keep_what_was_there() -> None:
    base = parse_arguments(["--qps=5", "--burst=6"])
    found = options_of({"qps": "7", "future-flag": "x"}, source="shard", base=base)
    assert (found.qps, found.burst) == (7, 6)
