"""How versions of a kind become each other: by nothing but their name, or by a webhook, which is not called here."""

from __future__ import annotations

from urllib.parse import urlsplit

from shoal.cluster.apiserver.builtin.names import dns1035_problems, subdomain_problems
from shoal.cluster.apiserver.custom.wording import Problems
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.kube.admission.fields import forbidden, invalid, not_supported, required

_ACCEPTED = ("v1", "v1beta1")
_HOOK = "spec.conversion.webhookClientConfig"
_VERSIONS = "spec.conversion.conversionReviewVersions"


def conversion_problems(conversion: Object | None, old: Object | None) -> Problems:
    """What is wrong with the way of conversion that a definition states."""
    if not conversion:
        return []
    strategy = conversion.get("strategy") or ""
    webhook = conversion.get("webhook")
    problems: Problems = []
    if not strategy:
        problems.append(required("spec.conversion.strategy"))
    elif strategy not in ("None", "Webhook"):
        problems.append(not_supported("spec.conversion.strategy", strategy, ("None", "Webhook")))
    config = (webhook or {}).get("clientConfig")
    reviewed = (webhook or {}).get("conversionReviewVersions") or []
    if strategy != "Webhook":
        told = "should not be set when strategy is not set to Webhook"
        if config is not None:
            problems.append(forbidden(_HOOK, told))
        if reviewed:
            problems.append(forbidden(_VERSIONS, told))
        return problems
    problems += _client_problems(config)
    known = ((old or {}).get("webhook") or {}).get("conversionReviewVersions") or []
    return problems + _review_problems(reviewed, requires_known=not known or any(each in _ACCEPTED for each in known))


def _client_problems(config: Object | None) -> Problems:
    if config is None:
        return [required(_HOOK, "required when strategy is set to Webhook")]
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [required(_HOOK, "exactly one of url or service is required")]
    if service is not None:
        problems: Problems = []
        for field in ("name", "namespace"):
            if not service.get(field):
                problems.append(required(f"{_HOOK}.service.{field}"))
        path, port = service.get("path"), service.get("port", 443)
        if path is not None:
            problems += _path_problems(path)
        if not 0 < port < 65536:
            problems.append(
                invalid(f"{_HOOK}.service.port", port, "port is not valid: must be between 1 and 65535, inclusive")
            )
        return problems
    return _url_problems(str(url))


def _path_problems(path: str) -> Problems:
    place = f"{_HOOK}.service.path"
    problems: Problems = []
    if path in ("", "/"):
        return problems
    if not path.startswith("/"):
        problems.append(invalid(place, path, "must start with a '/'"))
    for at, step in enumerate(path[1:].removesuffix("/").split("/")):
        if not step:
            problems.append(invalid(place, path, f"segment[{at}] may not be empty"))
        else:
            problems += [invalid(place, path, f"segment[{at}]: {fault}") for fault in subdomain_problems(step)]
    return problems


def _url_problems(url: str) -> Problems:
    place, form = f"{_HOOK}.url", "; desired format: https://host[/path]"
    parts = urlsplit(url)
    problems: Problems = []
    if parts.scheme != "https":
        problems.append(invalid(place, parts.scheme, f"'https' is the only allowed URL scheme{form}"))
    if not parts.hostname:
        problems.append(invalid(place, parts.netloc, f"host must be specified{form}"))
    if parts.username is not None:
        problems.append(invalid(place, parts.username, "user information is not permitted in the URL"))
    if parts.fragment:
        problems.append(invalid(place, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        problems.append(invalid(place, parts.query, "query parameters are not permitted in the URL"))
    return problems


def _review_problems(versions: list[str], *, requires_known: bool) -> Problems:
    if not versions:
        return [required(_VERSIONS)]
    problems: Problems = []
    for at, version in enumerate(versions):
        if version in versions[:at]:
            problems.append(invalid(f"{_VERSIONS}[{at}]", version, "duplicate version"))
            continue
        problems += [invalid(f"{_VERSIONS}[{at}]", version, fault) for fault in dns1035_problems(version)]
    if requires_known and not any(each in _ACCEPTED for each in versions):
        problems.append(invalid(_VERSIONS, versions, f"must include at least one of {', '.join(_ACCEPTED)}"))
    return problems
