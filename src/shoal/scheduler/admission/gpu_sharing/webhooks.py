"""The webhooks of pods, at the paths and under the names that KAI's own have.

An API server calls them only for pods of our schedulers that ask for parts of GPUs: while nobody answers these are
refused, since they could not run as they are, and every other pod is made as if there were no webhooks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from shoal.api.core import PODS, Pod
from shoal.api.meta import Document
from shoal.kube.admission import (
    Change,
    FieldProblem,
    ServiceEndpoint,
    UrlEndpoint,
    Webhook,
    Webhooks,
    mutating_configuration,
    validating_configuration,
)
from shoal.scheduler.admission.gpu_sharing.mutation import prepared
from shoal.scheduler.admission.gpu_sharing.rules import (
    ANNOTATIONS,
    VISIBLE_DEVICES,
    device_problems,
    request_problems,
)
from shoal.scheduler.admission.gpu_sharing.settings import GpuSharingSettings

MUTATE_PATH: Final = "/mutate--v1-pod"
VALIDATE_PATH: Final = "/validate--v1-pod"
MUTATING_NAME: Final = "mutating-kai-admission"
VALIDATING_NAME: Final = "validating-kai-admission"
_WEBHOOK: Final = "admission.kai.scheduler"


def _listed(texts: Iterable[str]) -> str:
    """A list of texts in CEL."""
    return f"[{', '.join(repr(text) for text in texts)}]"


_ASKS: Final = (
    f"has(object.metadata.annotations) && {_listed(ANNOTATIONS)}.exists(name, name in object.metadata.annotations)"
)
_CHOOSES: Final = " || ".join(
    f"has(object.spec.{field}) && object.spec.{field}.exists(container, "
    f"has(container.env) && container.env.exists(variable, variable.name == '{VISIBLE_DEVICES}'))"
    for field in ("containers", "initContainers")
)


def add_gpu_sharing_webhooks(webhooks: Webhooks, settings: GpuSharingSettings) -> None:
    """Adds what prepares and what judges pods of our schedulers, as far as they ask for GPUs."""
    ours = {
        "name": "scheduler-name-match",
        "expression": f"object.spec.schedulerName in {_listed(settings.schedulers)}",
    }
    shares = {"name": "asks-for-gpu-sharing", "expression": _ASKS}
    judged = {"name": "asks-for-gpus", "expression": f"{_ASKS} || {_CHOOSES}"} if settings.guards_devices else shares

    if settings.is_enabled:

        @webhooks.defaulting(
            PODS.documents(),
            path=MUTATE_PATH,
            name=_WEBHOOK,
            operations=("CREATE",),
            scope="Namespaced",
            match_conditions=(ours, shares),
            reinvocation_policy="IfNeeded",
        )
        def prepare(pod: Document) -> Document:
            return Document.of(prepared(pod.content, settings))

    @webhooks.validating(PODS, path=VALIDATE_PATH, name=_WEBHOOK, scope="Namespaced", match_conditions=(ours, judged))
    def sound_request(change: Change[Pod]) -> Iterator[FieldProblem]:
        return request_problems(change.object, change.old, settings)

    if settings.guards_devices:

        @webhooks.validating(
            PODS.documents(), path=VALIDATE_PATH, name=_WEBHOOK, scope="Namespaced", match_conditions=(ours, judged)
        )
        def chosen_devices(change: Change[Document]) -> Iterable[FieldProblem]:
            return device_problems(change.object.content) if change.old is None else ()


def gpu_sharing_configurations(
    webhooks: Iterable[Webhook], endpoint: ServiceEndpoint | UrlEndpoint, *, authorities: bytes = b""
) -> list[dict[str, Any]]:
    """The objects by which an API server learns of these webhooks; those of others are left to them."""
    found = []
    for webhook in webhooks:
        if webhook.path == MUTATE_PATH:
            found.append(mutating_configuration(MUTATING_NAME, [webhook], endpoint, authorities=authorities))
        elif webhook.path == VALIDATE_PATH:
            found.append(validating_configuration(VALIDATING_NAME, [webhook], endpoint, authorities=authorities))
    return found
