"""``usageDBConfig``: where the past is read, and which part of it counts. Every bad field is named at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from shoal.api.meta.duration import Duration, InvalidDuration
from shoal.scheduler.shares.usage.cron import Cron, InvalidCron
from shoal.scheduler.shares.usage.windows import Since, Sliding, Tumbling, Window

PROMETHEUS: Final = "prometheus"
BUILT_IN: Final = "builtin"
"""The scheduler's own memory."""

WEEK: Final = 7 * 24 * 3600.0
_LONG_UNITS: Final = {"y": 365 * 86400, "w": 7 * 86400, "d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}
_LONG: Final = re.compile(r"(?:[0-9]+(?:ms|[ywdhms]))+")
_METRICS: Final = {
    "cpuAllocationMetric": "kai_queue_allocated_cpu_cores",
    "memoryAllocationMetric": "kai_queue_allocated_memory_bytes",
    "gpuAllocationMetric": "kai_queue_allocated_gpus",
    "cpuCapacityMetric": 'sum(kube_node_status_capacity{resource="cpu"})',
    "memoryCapacityMetric": 'sum(kube_node_status_capacity{resource="memory"})',
    "gpuCapacityMetric": 'sum(kube_node_status_capacity{resource="nvidia_com_gpu"})',
}


class InvalidUsageSettings(ValueError):
    """A configuration that cannot be followed; ``problems`` has one sentence for each field."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSettings:
    """Where the past is read, and which part of it counts. Times are in seconds."""

    client_type: str = BUILT_IN
    address: str = ""
    """Of the server that is asked."""
    directory: Path | None = None
    """Where the scheduler's own memory is kept; None: nowhere, and it begins anew with every start."""
    window: Window = Sliding(WEEK)
    half_life: float | None = None
    fetch_interval: float = 60.0
    staleness: float = 300.0
    wait_timeout: float = 60.0
    query_timeout: float = 10.0
    resolution: float = 60.0
    metrics: Mapping[str, str] = field(default_factory=lambda: dict(_METRICS))


def usage_settings(config: Mapping[str, Any], *, environment: Mapping[str, str], now: float) -> UsageSettings:
    """Reads the configuration; raises InvalidUsageSettings with every field that is wrong."""
    reading = _Reading(config, environment, now)
    made = reading.settings()
    if reading.problems:
        raise InvalidUsageSettings(reading.problems)
    return made


def seconds(text: str) -> float:
    """Reads ``1w2d``, as Prometheus writes durations, or ``1h30m0.5s``, as Go does; raises InvalidDuration."""
    if _LONG.fullmatch(text):
        return float(sum(int(count) * _LONG_UNITS[unit] for count, unit in re.findall(r"([0-9]+)(ms|[ywdhms])", text)))
    try:
        return Duration.parse(text).seconds
    except InvalidDuration:
        raise InvalidDuration(text, "write numbers with units, such as 1w, 1h30m or 90s") from None


class _Reading:
    """One reading of a configuration, and what was wrong with it."""

    def __init__(self, config: Mapping[str, Any], environment: Mapping[str, str], now: float) -> None:
        self.problems: list[str] = []
        self._config = config
        self._environment = environment
        self._now = now
        self._parameters = self._mapping(config, "usageParams")
        self._extra = self._mapping(self._parameters, "extraParams", "usageParams.")

    def settings(self) -> UsageSettings:
        client_type = self._client_type()
        fetch_interval = self._length("fetchInterval", 60.0)
        half_life = self._length("halfLifePeriod", 0.0, may_be_none=True)
        return UsageSettings(
            client_type=client_type,
            address=self._address() if client_type == PROMETHEUS else "",
            directory=self._directory() if client_type == BUILT_IN else None,
            window=self._window(),
            half_life=half_life if half_life > 0 else None,
            fetch_interval=fetch_interval,
            staleness=max(fetch_interval, self._length("stalenessPeriod", 300.0)),
            wait_timeout=self._length("waitTimeout", 60.0, may_be_none=True),
            query_timeout=self._length("usageQueryTimeout", 10.0, is_extra=True),
            resolution=self._length("queryResolution", 60.0, is_extra=True),
            metrics={name: str(self._extra.get(name) or metric) for name, metric in _METRICS.items()},
        )

    def _client_type(self) -> str:
        kind = self._config.get("clientType")
        if kind not in (PROMETHEUS, BUILT_IN):
            self.problems.append(f"clientType {kind!r} is not known: use {PROMETHEUS} or {BUILT_IN}")
        return str(kind)

    def _address(self) -> str:
        direct, variable = (str(self._config.get(key) or "") for key in ("connectionString", "connectionStringEnvVar"))
        if bool(direct) == bool(variable):
            problem = "both are set" if direct else "neither is set"
            self.problems.append(f"connectionString or connectionStringEnvVar must be set, one of them: {problem}")
            return ""
        address, source = (direct, "connectionString") if direct else (self._environment.get(variable, ""), variable)
        try:
            parts = urlsplit(address)
            is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
        except ValueError:
            is_address = False
        if not is_address:
            shown = (
                f"{source} {address!r}" if direct else f"the environment variable {source} of connectionStringEnvVar"
            )
            self.problems.append(f"{shown} is no address such as http://prometheus:9090")
        return address.rstrip("/")

    def _directory(self) -> Path | None:
        direct, variable = (str(self._config.get(key) or "") for key in ("connectionString", "connectionStringEnvVar"))
        if direct and variable:
            self.problems.append("connectionString or connectionStringEnvVar may be set, not both")
            return None
        named = direct or (self._environment.get(variable, "") if variable else "")
        if not named:
            if variable:
                self.problems.append(f"the environment variable {variable} of connectionStringEnvVar is empty")
            return None
        if not Path(named).is_absolute():
            self.problems.append(f"connectionString {named!r} is no directory such as /var/lib/shoal/usage")
            return None
        return Path(named)

    def _window(self) -> Window:
        kind = self._parameters.get("windowType") or "sliding"
        size = self._length("windowSize", WEEK)
        if kind == "sliding":
            return Sliding(size)
        if kind == "tumbling":
            return Tumbling(size, self._first())
        if kind == "cron":
            return self._since()
        self.problems.append(f"usageParams.windowType {kind!r} is not known: use sliding, tumbling or cron")
        return Sliding(size)

    def _first(self) -> float:
        """When the first tumbling window began. YAML reads times by itself; a time without a zone is in UTC."""
        value = self._parameters.get("tumblingWindowStartTime")
        if value is None:
            return self._now
        try:
            moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        except ValueError:
            self.problems.append(
                f"usageParams.tumblingWindowStartTime {value!r} is no time such as 2026-01-01T00:00:00Z"
            )
            return self._now
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()

    def _since(self) -> Window:
        text = str(self._parameters.get("cronString") or "")
        try:
            return Since(Cron.parse(text))
        except InvalidCron as problem:
            self.problems.append(f"usageParams.cronString: {problem}")
            return Sliding(WEEK)

    def _length(self, name: str, default: float, *, may_be_none: bool = False, is_extra: bool = False) -> float:
        value = (self._extra if is_extra else self._parameters).get(name)
        if value is None or value == "":
            return default
        shown = f"usageParams.{'extraParams.' if is_extra else ''}{name}"
        try:
            length = seconds(str(value))
        except InvalidDuration as problem:
            self.problems.append(f"{shown}: {problem}")
            return default
        if length <= 0 and not may_be_none:
            self.problems.append(f"{shown} {value!r} must be longer than 0")
            return default
        return max(0.0, length)

    def _mapping(self, config: Mapping[str, Any], name: str, prefix: str = "") -> Mapping[str, Any]:
        value = config.get(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.problems.append(f"{prefix}{name} must be a mapping, not {value!r}")
            return {}
        return value
