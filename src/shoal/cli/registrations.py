"""Which registrations of webhooks are ``shoal up``'s own, and how they are taken back when it serves none."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from shoal.cluster.kubernetes import AdminApi

LABEL: Final = "app.kubernetes.io/managed-by"
OURS: Final = "shoal-up"
MARKS: Final[Mapping[str, str]] = {LABEL: OURS}

_PATH = "/apis/admissionregistration.k8s.io/v1"
_PLURALS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


def marked(registration: Mapping[str, Any], marks: Mapping[str, str] = MARKS) -> dict[str, Any]:
    """A registration that says whose it is; who takes it over under the same name takes the mark off."""
    metadata = registration["metadata"]
    return {**registration, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **marks}}}


def unregister(admin: AdminApi) -> list[str]:
    """Deletes the registrations that are marked as ours; gives their names."""
    from shoal.cluster.kubernetes import Refused  # noqa: PLC0415 - only who calls this has it

    gone = []
    for plural in _PLURALS:
        for found in admin.request("GET", f"{_PATH}/{plural}?labelSelector={LABEL}={OURS}")["items"]:
            name, uid = found["metadata"]["name"], found["metadata"]["uid"]
            with suppress(Refused):  # somebody else was first
                admin.request("DELETE", f"{_PATH}/{plural}/{name}", {"preconditions": {"uid": uid}})
            gone.append(name)
    return gone
