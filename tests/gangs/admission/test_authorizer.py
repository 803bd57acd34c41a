"""Who may touch what was made for a set."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.meta import HasMetadata, PartialObject
from shoal.gangs.admission.authorizer import managed_kinds, verdict_with_set, verdict_without_set
from shoal.gangs.settings import Authorizing
from shoal.kube.admission import AdmissionRequest, Allowed, Denied, Operation, UserInfo, Verdict
from shoal.kube.admission.wire import GroupVersionKind, GroupVersionResource

OPERATOR = "system:serviceaccount:grove-system:grove-operator"
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
RULES = Authorizing(is_enabled=True, operator_user=OPERATOR, exempt_users=frozenset({COLLECTOR}))
MANAGED = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "web"}
STRANGER = "ann"


def noted(**annotations: str) -> PartialObject:
    """A set with these annotations."""
    return msgspec.convert({"metadata": {"name": "web", "annotations": annotations}}, PartialObject)


PROTECTED = noted()
UNPROTECTED = noted(**{"grove.io/disable-managed-resource-protection": "true"})


def asked(
    operation: str,
    *,
    user: str = STRANGER,
    kind: str = "PodClique",
    labels: dict[str, str] | None = MANAGED,
    labels_before: dict[str, str] | None = MANAGED,
) -> AdmissionRequest:
    """A request for an object with these labels; ``None`` where there is no such object."""

    def raw(found: dict[str, str] | None) -> msgspec.Raw:
        body: Any = None if found is None else {"metadata": {"name": "web-0-workers", "labels": found}}
        return msgspec.Raw(msgspec.json.encode(body))

    group = "" if kind == "Pod" else "grove.io"
    return AdmissionRequest(
        uid="1",
        kind=GroupVersionKind(group=group, version="v1", kind=kind),
        resource=GroupVersionResource(group=group, version="v1", resource=f"{kind.lower()}s"),
        name="web-0-workers",
        namespace="default",
        operation=Operation(operation),
        user_info=UserInfo(username=user),
        object=raw(None if operation == "DELETE" else labels),
        old_object=raw(None if operation == "CREATE" else labels_before),
    )


def judged(request: AdmissionRequest, owner: HasMetadata | None = PROTECTED) -> Verdict:
    return verdict_without_set(request, RULES) or verdict_with_set(request, owner)


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
class TestStranger:
    def test_may_touch_nothing_of_a_set(self, operation: str) -> None:
        assert judged(asked(operation)) == Denied(
            f'user "ann" may not {operation.lower()} PodClique "web-0-workers", which is managed by PodCliqueSet '
            '"web": change the set instead, or set its annotation grove.io/disable-managed-resource-protection '
            'to "true"'
        )

    def test_may_touch_what_a_set_leaves_open(self, operation: str) -> None:
        assert judged(asked(operation), UNPROTECTED) == Allowed()
        closed = noted(**{"grove.io/disable-managed-resource-protection": "false"})
        assert isinstance(judged(asked(operation), closed), Denied)

    def test_may_touch_what_a_set_left_behind_and_is_told(self, operation: str) -> None:
        assert judged(asked(operation), None) == Allowed(
            ('PodClique "web-0-workers" is part of PodCliqueSet "web", which is gone: nobody protects it',)
        )

    def test_may_touch_what_names_no_set_and_is_told(self, operation: str) -> None:
        labels = {"app.kubernetes.io/managed-by": "grove-operator"}
        assert judged(asked(operation, labels=labels, labels_before=labels)) == Allowed(
            ('PodClique "web-0-workers" has no label app.kubernetes.io/part-of: nobody protects it',)
        )


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
@pytest.mark.parametrize("user", [OPERATOR, COLLECTOR])
def test_the_operator_and_the_exempt_may_do_anything(user: str, operation: str) -> None:
    assert judged(asked(operation, user=user)) == Allowed()


@pytest.mark.parametrize(("operation", "is_allowed"), [("CREATE", False), ("UPDATE", False), ("DELETE", True)], ids=str)
def test_pods_may_be_deleted_by_anyone_and_nothing_more(operation: str, is_allowed: bool) -> None:
    assert isinstance(judged(asked(operation, kind="Pod")), Allowed) is is_allowed


def test_connecting_is_open() -> None:
    assert judged(asked("CONNECT", kind="Pod")) == Allowed()


def test_an_update_is_judged_by_what_is_there() -> None:
    """Nobody frees an object by taking its labels off, or is kept from adding them to what is theirs."""
    assert isinstance(judged(asked("UPDATE", labels={})), Denied)
    assert isinstance(judged(asked("UPDATE", labels_before={})), Allowed)


def test_an_operator_without_a_name_is_nobody() -> None:
    assert verdict_without_set(asked("UPDATE", user=""), Authorizing(is_enabled=True)) is None


def test_what_is_made_for_sets_is_protected_in_every_version() -> None:
    assert {kind.version for kind in managed_kinds()} == {"*"}
    assert {kind.full_name for kind in managed_kinds()} == {
        "podcliques.grove.io",
        "podcliquescalinggroups.grove.io",
        "podgangs.scheduler.grove.io",
        "pods",
        "services",
        "serviceaccounts",
        "secrets",
        "roles.rbac.authorization.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
        "horizontalpodautoscalers.autoscaling",
        "resourceclaims.resource.k8s.io",
        "computedomains.resource.nvidia.com",
    }
