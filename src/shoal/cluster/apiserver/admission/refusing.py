"""How admission says no: 403, with the object's name as far as it has one."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.cluster.apiserver.admission.attributes import Attributes
from shoal.cluster.apiserver.refusals import Refused, qualified, refused
from shoal.kube.errors import Cause


def refuse(request: Attributes, why: str, *, causes: Sequence[Cause] = ()) -> Refused:
    """The refusal of a request by a rule of admission."""
    kind, name = request.kind, shown_name(request)
    message = f'{qualified(kind.resource, kind.group)} "{name}" is forbidden: {why}'
    return refused(403, "Forbidden", message, name=name, group=kind.group, kind=kind.resource, causes=causes)


def shown_name(request: Attributes) -> str:
    """The object's name, or what its name will begin with."""
    if request.name:
        return request.name
    metadata = (request.object or {}).get("metadata") or {}
    return metadata.get("name") or metadata.get("generateName") or "Unknown"


def together(problems: Sequence[str]) -> str:
    """Several problems as one text, each once."""
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
