"""Who may touch what was made for a PodCliqueSet: the operator, and those whom its configuration exempts.

Anyone may delete pods, since they come back, and anyone may do anything where the set is gone or says so itself. An
update or a deletion is judged by the object as it is, so that nobody frees an object by taking its labels off.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from shoal.api.autoscaling import HORIZONTAL_POD_AUTOSCALERS
from shoal.api.core import PODS, SECRETS, SERVICE_ACCOUNTS, SERVICES
from shoal.api.grove import POD_CLIQUES, SCALING_GROUPS, names
from shoal.api.meta import Document, HasMetadata, PartialObject, Resource
from shoal.api.resource_k8s_io import RESOURCE_CLAIMS
from shoal.api.resource_nvidia_com import COMPUTE_DOMAINS
from shoal.api.scheduler_grove_io import POD_GANGS
from shoal.gangs.settings import Authorizing
from shoal.kube.admission import AdmissionRequest, Allowed, Denied, Operation, Verdict

ROLES: Final = Resource(type=Document, group="rbac.authorization.k8s.io", version="v1", kind="Role", plural="roles")
ROLE_BINDINGS: Final = Resource(
    type=Document, group="rbac.authorization.k8s.io", version="v1", kind="RoleBinding", plural="rolebindings"
)
_MANAGED: Final[tuple[Resource[Any], ...]] = (
    POD_CLIQUES,
    SCALING_GROUPS,
    POD_GANGS,
    PODS,
    SERVICES,
    SERVICE_ACCOUNTS,
    SECRETS,
    ROLES,
    ROLE_BINDINGS,
    HORIZONTAL_POD_AUTOSCALERS,
    RESOURCE_CLAIMS,
    COMPUTE_DOMAINS,
)


def managed_kinds() -> list[Resource[Document]]:
    """What is made for sets, in any version: what is asked for in another one is the same object."""
    return [
        Resource(type=Document, group=kind.group, version="*", kind=kind.kind, plural=kind.plural) for kind in _MANAGED
    ]


def managed_by(request: AdmissionRequest) -> str:
    """The set that the object was made for; empty where it does not say."""
    return _subject(request).metadata.labels.get(names.PART_OF_LABEL, "")


def verdict_without_set(request: AdmissionRequest, authorizing: Authorizing) -> Verdict | None:
    """The verdict where it does not depend on the set; None where the set has to be looked at."""
    if request.operation is Operation.CONNECT:
        return Allowed()
    if request.user_info.username in {authorizing.operator_user, *authorizing.exempt_users} - {""}:
        return Allowed()
    if request.operation is Operation.DELETE and (request.resource.group, request.resource.resource) == ("", "pods"):
        return Allowed()
    if not managed_by(request):
        return Allowed((f"{_told(request)} has no label {names.PART_OF_LABEL}: nobody protects it",))
    return None


def verdict_with_set(request: AdmissionRequest, owner: HasMetadata | None) -> Verdict:
    """The verdict on a user whom nothing else lets through; ``owner`` is the set, if it exists."""
    name = managed_by(request)
    if owner is None:
        return Allowed((f'{_told(request)} is part of PodCliqueSet "{name}", which is gone: nobody protects it',))
    if owner.metadata.annotations.get(names.UNPROTECTED_ANNOTATION) == "true":
        return Allowed()
    return Denied(
        f'user "{request.user_info.username}" may not {request.operation.lower()} {_told(request)}, which is managed '
        f'by PodCliqueSet "{name}": change the set instead, or set its annotation '
        f'{names.UNPROTECTED_ANNOTATION} to "true"'
    )


def _subject(request: AdmissionRequest) -> PartialObject:
    is_new = request.operation is Operation.CREATE
    raw = request.object if is_new else request.old_object
    return msgspec.json.decode(bytes(raw), type=PartialObject) if bytes(raw) not in (b"", b"null") else PartialObject()


def _told(request: AdmissionRequest) -> str:
    metadata = _subject(request).metadata
    return f'{request.kind.kind} "{request.name or metadata.name or metadata.generate_name}"'
