"""Probes and lifecycle handlers of a container."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.names import port_name_problems, port_number_problems
from shoal.cluster.apiserver.builtin.workloads.texts import NEGATIVE, header_problems
from shoal.kube.admission.fields import FieldProblem, forbidden, invalid, not_supported, required

_SECONDS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_OF_PROBE = ("exec", "httpGet", "tcpSocket", "grpc")
_OF_LIFECYCLE = ("exec", "httpGet", "tcpSocket", "sleep")


def check_probes(container: dict[str, Any], grace: int | None, path: str, problems: list[FieldProblem]) -> None:
    """All probes of a container."""
    if (probe := container.get("livenessProbe")) is not None:
        _check_probe(probe, grace, f"{path}.livenessProbe", problems)
        _check_success(probe, f"{path}.livenessProbe", problems)
    if (probe := container.get("readinessProbe")) is not None:
        _check_probe(probe, grace, f"{path}.readinessProbe", problems)
        if (seconds := probe.get("terminationGracePeriodSeconds")) is not None:
            here = f"{path}.readinessProbe.terminationGracePeriodSeconds"
            problems.append(invalid(here, seconds, "must not be set for readinessProbes"))
    if (probe := container.get("startupProbe")) is not None:
        _check_probe(probe, grace, f"{path}.startupProbe", problems)
        _check_success(probe, f"{path}.startupProbe", problems)


def check_lifecycle(lifecycle: dict[str, Any], grace: int | None, path: str, problems: list[FieldProblem]) -> None:
    """What a container does after its start and before its end."""
    for moment in ("postStart", "preStop"):
        if (handler := lifecycle.get(moment)) is not None:
            _check_handler(handler, _OF_LIFECYCLE, grace, f"{path}.{moment}", problems)


def _check_probe(probe: dict[str, Any], grace: int | None, path: str, problems: list[FieldProblem]) -> None:
    _check_handler(probe, _OF_PROBE, grace, path, problems)
    for field in _SECONDS:
        if probe.get(field, 0) < 0:
            problems.append(invalid(f"{path}.{field}", probe[field], NEGATIVE))
    seconds = probe.get("terminationGracePeriodSeconds")
    if seconds is not None and seconds <= 0:
        problems.append(invalid(f"{path}.terminationGracePeriodSeconds", seconds, "must be greater than 0"))


def _check_success(probe: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    threshold = probe.get("successThreshold", 0)
    if threshold != 1:
        problems.append(invalid(f"{path}.successThreshold", threshold, "must be 1"))


def _check_handler(
    handler: dict[str, Any], kinds: tuple[str, ...], grace: int | None, path: str, problems: list[FieldProblem]
) -> None:
    found = [kind for kind in kinds if handler.get(kind) is not None]
    if not found:
        problems.append(required(path, "must specify a handler type"))
        return
    _check_action(found[0], handler[found[0]], grace, f"{path}.{found[0]}", problems)
    problems += [forbidden(f"{path}.{kind}", "may not specify more than 1 handler type") for kind in found[1:]]


def _check_action(
    kind: str, action: dict[str, Any], grace: int | None, path: str, problems: list[FieldProblem]
) -> None:
    if kind == "exec":
        if not action.get("command"):
            problems.append(required(f"{path}.command"))
    elif kind == "httpGet":
        if not action.get("path"):
            problems.append(required(f"{path}.path"))
        _check_port(action.get("port", 0), f"{path}.port", problems)
        if (scheme := action.get("scheme", "")) not in ("HTTP", "HTTPS"):
            problems.append(not_supported(f"{path}.scheme", scheme, ["HTTP", "HTTPS"]))
        for header in action.get("httpHeaders") or ():
            name = header.get("name", "")
            problems += [invalid(f"{path}.httpHeaders", name, each) for each in header_problems(name)]
    elif kind == "sleep":
        seconds = action.get("seconds", 0)
        if grace is not None and not 0 <= seconds <= grace:
            words = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            problems.append(invalid(path, seconds, words))
    else:
        _check_port(action.get("port", 0), f"{path}.port", problems)


def _check_port(port: int | str, path: str, problems: list[FieldProblem]) -> None:
    messages = port_name_problems(port) if isinstance(port, str) else port_number_problems(port)
    problems += [invalid(path, port, each) for each in messages]
