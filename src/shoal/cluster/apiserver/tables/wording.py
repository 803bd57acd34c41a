"""Texts that many tables share: labels, selectors, containers, lists that are cut short."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from shoal.cluster.apiserver.kinds.kind import Object

NONE = "<none>"
UNSET = "<unset>"
_OPERATORS = {"In": "in", "NotIn": "notin"}


def labels_text(labels: Mapping[str, str] | None) -> str:
    """Labels as ``a=b,c=d``."""
    return ",".join(sorted(f"{key}={value}" for key, value in labels.items())) if labels else NONE


def selector_text(selector: Object | None) -> str:
    """A label selector as the command line takes it; empty for one that selects nothing or everything."""
    if not selector:
        return ""
    requirements = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        key, operator = expression.get("key", ""), expression.get("operator", "")
        if operator in _OPERATORS:
            values = ",".join(sorted(expression.get("values") or ()))
            requirements.append((key, f"{key} {_OPERATORS[operator]} ({values})"))
        else:
            requirements.append((key, f"!{key}" if operator == "DoesNotExist" else key))
    requirements.sort(key=lambda requirement: requirement[0])
    return ",".join(text for _, text in requirements)


def container_texts(template: Object) -> tuple[str, str]:
    """The names and the images of the containers of a pod template."""
    containers = (template.get("spec") or {}).get("containers") or ()
    return (
        ",".join(container.get("name") or "" for container in containers),
        ",".join(container.get("image") or "" for container in containers),
    )


def some_of(texts: Iterable[str], count: int, *, limit: int = 3, separator: str = ",") -> str:
    """The first few of so many texts, and how many more there are."""
    shown = separator.join(islice(texts, limit))
    return f"{shown} + {count - limit} more..." if count > limit else shown


def bool_text(value: bool | None) -> str:
    """A switch that may be left unset."""
    return UNSET if value is None else str(value)
