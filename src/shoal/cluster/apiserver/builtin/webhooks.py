"""Mutating- and ValidatingWebhookConfiguration: what they are called for, and where they are reached."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from shoal.cluster.apiserver.builtin.names import (
    dns1035_problems,
    port_number_problems,
    qualified_name_problems,
    subdomain_problems,
)
from shoal.cluster.apiserver.builtin.selectors import label_selector_problems
from shoal.cluster.apiserver.builtin.values import named, one_of
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem, duplicate, invalid, not_supported, required, too_many

GROUP = "admissionregistration.k8s.io"
OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
REVIEW_VERSIONS = ("v1", "v1beta1")
MAX_CONDITIONS = 64


def default_mutating(new: Object) -> None:
    """Fills in what the hooks leave out."""
    _default_hooks(new)
    for hook in new.get("webhooks") or ():
        hook.setdefault("reinvocationPolicy", "Never")


def default_validating(new: Object) -> None:
    """The same for those that only look."""
    _default_hooks(new)


def configuration_problems(new: Object, old: Object | None = None) -> list[FieldProblem]:
    """What is wrong with a configuration; what was stored under older rules may stay as it was."""
    hooks, before = new.get("webhooks") or [], (old or {}).get("webhooks") or []
    strict = all(each.get("sideEffects") in ("None", "NoneOnDryRun") for each in before)
    reviewed = all(set(each.get("admissionReviewVersions") or ()) & set(REVIEW_VERSIONS) for each in before)
    unique = len({each.get("name") for each in before}) == len(before)
    same = old is not None and [each.get("matchConditions") for each in hooks] == [
        each.get("matchConditions") for each in before
    ]
    problems: list[FieldProblem] = []
    names: set[str] = set()
    for index, hook in enumerate(hooks):
        here, name = f"webhooks[{index}]", hook.get("name", "")
        problems += _hook_problems(hook, here, strict)
        if not same:
            problems += _condition_problems(hook.get("matchConditions") or (), f"{here}.matchConditions")
        versions = hook.get("admissionReviewVersions") or []
        problems += _review_problems(versions, f"{here}.admissionReviewVersions", reviewed)
        if unique and name and name in names:
            problems.append(duplicate(f"{here}.name", name))
        names.add(name)
    return problems


def _default_hooks(new: Object) -> None:
    for hook in new.get("webhooks") or ():
        hook.setdefault("failurePolicy", "Fail")
        hook.setdefault("matchPolicy", "Equivalent")
        hook.setdefault("namespaceSelector", {})
        hook.setdefault("objectSelector", {})
        hook.setdefault("timeoutSeconds", 10)
        for rule in hook.get("rules") or ():
            rule.setdefault("scope", "*")
        service = (hook.get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)


def _hook_problems(hook: dict[str, Any], path: str, strict: bool) -> list[FieldProblem]:
    problems = _name_problems(hook.get("name", ""), f"{path}.name")
    for index, rule in enumerate(hook.get("rules") or ()):
        problems += rule_problems(rule, f"{path}.rules[{index}]")
    for field, supported in (("failurePolicy", ("Fail", "Ignore")), ("matchPolicy", ("Equivalent", "Exact"))):
        if hook.get(field) is not None:
            problems += one_of(f"{path}.{field}", hook[field], supported)
    effects = hook.get("sideEffects")
    allowed = ("None", "NoneOnDryRun") if strict else ("None", "NoneOnDryRun", "Some", "Unknown")
    if effects is None:
        problems.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(allowed)}"))
    else:
        problems += one_of(f"{path}.sideEffects", effects, allowed)
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        words = "the timeout value must be between 1 and 30 seconds"
        problems.append(invalid(f"{path}.timeoutSeconds", seconds, words))
    problems += label_selector_problems(hook.get("namespaceSelector"), f"{path}.namespaceSelector")
    problems += label_selector_problems(hook.get("objectSelector"), f"{path}.objectSelector")
    if hook.get("reinvocationPolicy") is not None:
        problems += one_of(f"{path}.reinvocationPolicy", hook["reinvocationPolicy"], ("IfNeeded", "Never"))
    return problems + client_problems(hook.get("clientConfig") or {}, f"{path}.clientConfig")


def rule_problems(rule: dict[str, Any], path: str) -> list[FieldProblem]:
    """What is wrong with one rule of a hook or policy."""
    problems: list[FieldProblem] = []
    operations = rule.get("operations") or []
    if not operations:
        problems.append(required(f"{path}.operations"))
    if len(operations) > 1 and "*" in operations:
        words = "if '*' is present, must not specify other operations"
        problems.append(invalid(f"{path}.operations", operations, words))
    for index, operation in enumerate(operations):
        problems += one_of(f"{path}.operations[{index}]", operation, OPERATIONS)
    for field, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(field) or []
        if not values:
            problems.append(required(f"{path}.{field}"))
        if len(values) > 1 and "*" in values:
            words = f"if '*' is present, must not specify other {what}"
            problems.append(invalid(f"{path}.{field}", values, words))
    for index, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            problems.append(required(f"{path}.apiVersions[{index}]"))
    problems += _resources_problems(rule.get("resources") or [], f"{path}.resources")
    scope = rule.get("scope")
    if scope is not None and scope not in ("*", "Cluster", "Namespaced"):
        problems.append(not_supported(f"{path}.scope", scope, ("*", "Cluster", "Namespaced")))
    return problems


def client_problems(client: dict[str, Any], path: str) -> list[FieldProblem]:
    """What is wrong with how a hook is reached."""
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    if url is not None:
        return _url_problems(url, f"{path}.url")
    return _service_problems(service or {}, f"{path}.service")


def _name_problems(name: str, path: str) -> list[FieldProblem]:
    if not name:
        return [required(path)]
    if found := subdomain_problems(name):
        return [invalid(path, name, ",".join(found))]
    if name.count(".") < 2:
        return [invalid(path, name, "should be a domain with at least three segments separated by dots")]
    return []


def _resources_problems(resources: list[str], path: str) -> list[FieldProblem]:
    problems = [] if resources else [required(path)]
    whole: set[str] = set()
    everywhere: set[str] = set()
    plain = False
    for index, each in enumerate(resources):
        here = f"{path}[{index}]"
        if not each:
            problems.append(required(here))
            continue
        resource, slash, sub = each.partition("/")
        if not slash:
            plain = each != "*"
            continue
        if resource in whole:
            problems.append(invalid(here, each, f"if '{resource}/*' is present, must not specify {each}"))
        if sub in everywhere:
            problems.append(invalid(here, each, f"if '*/{sub}' is present, must not specify {each}"))
        if sub == "*":
            whole.add(resource)
        if resource == "*":
            everywhere.add(sub)
    if len(resources) > 1 and "*/*" in resources:
        words = "if '*/*' is present, must not specify other resources"
        problems.append(invalid(path, resources, words))
    if "*" in resources and plain:
        words = "if '*' is present, must not specify other resources without subresources"
        problems.append(invalid(path, resources, words))
    return problems


def _url_problems(url: str, path: str) -> list[FieldProblem]:
    form = "; desired format: https://host[/path]"
    try:
        parts = urlsplit(url)
    except ValueError as error:
        return [required(path, f"url must be a valid URL: {error}{form}")]
    problems: list[FieldProblem] = []
    if parts.scheme != "https":
        problems.append(invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{form}"))
    user, at, host = parts.netloc.rpartition("@")
    if not host:
        problems.append(invalid(path, host, f"host must be specified{form}"))
    if at:
        problems.append(invalid(path, user, "user information is not permitted in the URL"))
    if parts.fragment:
        problems.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        problems.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))
    return problems


def _service_problems(service: dict[str, Any], path: str) -> list[FieldProblem]:
    # Kubernetes blames each of these two for the other, and clients see that.
    problems: list[FieldProblem] = []
    if not service.get("namespace"):
        problems.append(required(f"{path}.name"))
    if not service.get("name"):
        problems.append(required(f"{path}.namespace"))
    port = service.get("port", 0)
    if found := port_number_problems(port):
        problems.append(invalid(f"{path}.port", port, f"port is not valid: {', '.join(found)}"))
    url = service.get("path")
    if url in (None, "", "/"):
        return problems
    if url == "//":
        return [*problems, invalid(f"{path}.path", url, "segment[0] may not be empty")]
    if not url.startswith("/"):
        problems.append(invalid(f"{path}.path", url, "must start with a '/'"))
    for index, step in enumerate(url[1:].removesuffix("/").split("/")):
        if not step:
            problems.append(invalid(f"{path}.path", url, f"segment[{index}] may not be empty"))
            continue
        problems += [invalid(f"{path}.path", url, f"segment[{index}]: {each}") for each in subdomain_problems(step)]
    return problems


def _condition_problems(conditions: Any, path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    if len(conditions) > MAX_CONDITIONS:
        problems.append(too_many(path, len(conditions), MAX_CONDITIONS))
    names: set[str] = set()
    for index, condition in enumerate(conditions):
        here, name = f"{path}[{index}]", condition.get("name", "")
        if not re.search(r"\S", condition.get("expression", "")):
            problems.append(required(f"{here}.expression"))
        if name:
            problems += named(f"{here}.name", name, qualified_name_problems)
        else:
            problems.append(required(f"{here}.name"))
        if name and name in names:
            problems.append(duplicate(f"{here}.name", name))
        names.add(name)
    return problems


def _review_problems(versions: list[str], path: str, must_be_known: bool) -> list[FieldProblem]:
    if not versions:
        return [required(path, f"must specify one of {', '.join(REVIEW_VERSIONS)}")]
    problems: list[FieldProblem] = []
    for index, version in enumerate(versions):
        if version in versions[:index]:
            problems.append(invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        problems += named(f"{path}[{index}]", version, dns1035_problems)
    if must_be_known and not set(versions) & set(REVIEW_VERSIONS):
        words = f"must include at least one of {', '.join(REVIEW_VERSIONS)}"
        problems.append(invalid(path, versions, words))
    return problems


RULES = {
    (GROUP, "MutatingWebhookConfiguration"): Rules(
        name_problems=subdomain_problems,
        defaults=default_mutating,
        validate_create=configuration_problems,
        validate_update=configuration_problems,
        unconditional_update=False,
    ),
    (GROUP, "ValidatingWebhookConfiguration"): Rules(
        name_problems=subdomain_problems,
        defaults=default_validating,
        validate_create=configuration_problems,
        validate_update=configuration_problems,
        unconditional_update=False,
    ),
}
