"""Ingress and IngressClass: hosts, paths and the backends behind them."""

from __future__ import annotations

import re
from typing import Any

from shoal.cluster.apiserver.builtin.addresses import legacy_address_problems, parse_address
from shoal.cluster.apiserver.builtin.names import (
    label_problems,
    path_segment_problems,
    pattern_problem,
    port_name_problems,
    subdomain_problems,
    wildcard_problems,
)
from shoal.cluster.apiserver.builtin.values import named, one_of, port_number
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import (
    FieldProblem,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
    too_long,
)

GROUP = "networking.k8s.io"
CLASS_ANNOTATION = "kubernetes.io/ingress.class"
PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
CONTROLLER_LIMIT = 250

_BAD_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDS = ("/..", "/.")
_URL_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_url_path = re.compile(_URL_PATH).fullmatch


def ingress_problems(new: Object, old: Object | None = None) -> list[FieldProblem]:
    """What is wrong with an Ingress."""
    spec, before = new.get("spec") or {}, (old or {}).get("spec") or {}
    problems: list[FieldProblem] = []
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        words = "either `defaultBackend` or `rules` must be specified"
        problems.append(invalid("spec", spec.get("rules"), words))
    if spec.get("defaultBackend") is not None:
        problems += _backend_problems(spec["defaultBackend"], "spec.defaultBackend")
    for index, rule in enumerate(spec.get("rules") or ()):
        problems += _rule_problems(rule, f"spec.rules[{index}]")
    loose = any(_secret_problems(each) for each in before.get("tls") or ())
    for index, tls in enumerate(spec.get("tls") or ()):
        here = f"spec.tls[{index}]"
        for place, host in enumerate(tls.get("hosts") or ()):
            problems += _host_problems(host, f"{here}.hosts[{place}]")
        if not loose:
            problems += [invalid(f"{here}.secretName", tls["secretName"], each) for each in _secret_problems(tls)]
    if (name := spec.get("ingressClassName")) is not None:
        problems += named("spec.ingressClassName", name, subdomain_problems)
    return problems


def validate_create(new: Object) -> list[FieldProblem]:
    """The same for a new one, which may not name two classes."""
    problems = ingress_problems(new)
    noted = (new["metadata"].get("annotations") or {}).get(CLASS_ANNOTATION)
    name = (new.get("spec") or {}).get("ingressClassName")
    if noted is not None and name is not None and noted != name:
        words = "must match `ingressClassName` when both are specified"
        problems.append(invalid(f"annotations.{CLASS_ANNOTATION}", noted, words))
    return problems


def validate_status(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with the addresses at which it is reached."""
    given, before = (((each.get("status") or {}).get("loadBalancer") or {}).get("ingress") or [] for each in (new, old))
    known = [each["ip"] for each in before if each.get("ip")]
    problems: list[FieldProblem] = []
    for index, ingress in enumerate(given):
        here = f"status.loadBalancer.ingress[{index}]"
        if address := ingress.get("ip"):
            problems += legacy_address_problems(f"{here}.ip", address, known)
        if host := ingress.get("hostname"):
            problems += named(f"{here}.hostname", host, subdomain_problems)
            if parse_address(host):
                problems.append(invalid(f"{here}.hostname", host, "must be a DNS name, not an IP address"))
    return problems


def warnings(new: Object) -> list[str]:
    """What a client is told of an Ingress that is taken."""
    noted = CLASS_ANNOTATION in (new["metadata"].get("annotations") or {})
    if noted and (new.get("spec") or {}).get("ingressClassName") is None:
        return [f"annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"]
    return []


def default_class(new: Object) -> None:
    """Parameters are for the whole cluster where nothing else is said."""
    parameters = (new.get("spec") or {}).get("parameters")
    if parameters is not None and parameters.get("scope") is None:
        parameters["scope"] = "Cluster"


def class_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with an IngressClass."""
    spec = new.get("spec") or {}
    controller = spec.get("controller", "")
    problems: list[FieldProblem] = []
    if len(controller) > CONTROLLER_LIMIT:
        problems.append(too_long("spec.controller", CONTROLLER_LIMIT))
    problems += _domain_path_problems("spec.controller", controller)
    if (parameters := spec.get("parameters")) is not None:
        problems += _parameters_problems(parameters, "spec.parameters")
    return problems


def validate_class_update(new: Object, old: Object) -> list[FieldProblem]:
    """The same for a change: its controller stays."""
    problems = class_problems(new)
    controller = (new.get("spec") or {}).get("controller", "")
    if controller != (old.get("spec") or {}).get("controller", ""):
        problems.append(immutable("spec.controller", controller))
    return problems


def _rule_problems(rule: dict[str, Any], path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    if host := rule.get("host"):
        if parse_address(host):
            problems.append(invalid(f"{path}.host", host, "must be a DNS name, not an IP address"))
        problems += _host_problems(host, f"{path}.host")
    http = rule.get("http")
    if http is None:
        return problems
    paths = http.get("paths") or ()
    if not paths:
        problems.append(required(f"{path}.http.paths"))
    for index, each in enumerate(paths):
        problems += _path_problems(each, f"{path}.http.paths[{index}]")
    return problems


def _host_problems(host: str, path: str) -> list[FieldProblem]:
    return named(path, host, wildcard_problems if "*" in host else subdomain_problems)


def _path_problems(entry: dict[str, Any], path: str) -> list[FieldProblem]:
    kind, value = entry.get("pathType"), entry.get("path", "")
    if kind is None:
        return [required(f"{path}.pathType", "pathType must be specified")]
    problems: list[FieldProblem] = []
    if kind not in PATH_TYPES:
        problems.append(not_supported(f"{path}.pathType", kind, PATH_TYPES))
    elif not value.startswith("/") and (value or kind != "ImplementationSpecific"):
        problems.append(invalid(f"{path}.path", value, "must be an absolute path"))
    if kind in ("Exact", "Prefix"):
        problems += [
            invalid(f"{path}.path", value, f"must not contain '{each}'") for each in _BAD_SEQUENCES if each in value
        ]
        problems += [
            invalid(f"{path}.path", value, f"cannot end with '{each}'") for each in _BAD_ENDS if value.endswith(each)
        ]
    return problems + _backend_problems(entry.get("backend") or {}, f"{path}.backend")


def _backend_problems(backend: dict[str, Any], path: str) -> list[FieldProblem]:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return _reference_problems(resource, f"{path}.resource")
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    name, port = service.get("name"), service.get("port") or {}
    problems = named(f"{path}.service.name", name, label_problems) if name else [required(f"{path}.service.name")]
    if port.get("name") and port.get("number"):
        problems.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.get("name"):
        problems += named(f"{path}.service.port.name", port["name"], port_name_problems)
    elif port.get("number"):
        problems += port_number(f"{path}.service.port.number", port["number"])
    else:
        problems.append(required(path, "port name or number is required"))
    return problems


def _reference_problems(reference: dict[str, Any], path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    if (group := reference.get("apiGroup")) is not None:
        problems += named(f"{path}.apiGroup", group, subdomain_problems)
    for field in ("kind", "name"):
        if value := reference.get(field):
            problems += named(f"{path}.{field}", value, path_segment_problems)
        else:
            problems.append(required(f"{path}.{field}"))
    return problems


def _parameters_problems(parameters: dict[str, Any], path: str) -> list[FieldProblem]:
    problems = _reference_problems(parameters, path)
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    if scope is None:
        return [*problems, required(f"{path}.scope")]
    problems += one_of(f"{path}.scope", scope, ("Cluster", "Namespace"))
    if scope == "Namespace" and namespace is None:
        problems.append(required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'"))
    elif scope == "Namespace":
        problems += named(f"{path}.namespace", namespace or "", label_problems)
    elif scope == "Cluster" and namespace is not None:
        problems.append(forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'"))
    return problems


def _domain_path_problems(path: str, value: str) -> list[FieldProblem]:
    if not value:
        return [required(path)]
    host, slash, rest = value.partition("/")
    if not (slash and host and rest):
        return [invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    problems = named(path, host, subdomain_problems)
    if not _url_path(rest):
        problems.append(invalid(path, rest, pattern_problem("Invalid path", _URL_PATH)))
    return problems


def _secret_problems(tls: dict[str, Any]) -> list[str]:
    return subdomain_problems(tls["secretName"]) if tls.get("secretName") else []


RULES = {
    (GROUP, "Ingress"): Rules(
        name_problems=subdomain_problems,
        validate_create=validate_create,
        validate_update=ingress_problems,
        validate_status=validate_status,
        warnings=warnings,
        resets={"": (("status",),), "status": (("spec",),)},
    ),
    (GROUP, "IngressClass"): Rules(
        name_problems=subdomain_problems,
        defaults=default_class,
        validate_create=class_problems,
        validate_update=validate_class_update,
    ),
}
