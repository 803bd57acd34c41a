"""NamespaceLifecycle: nothing comes into a namespace that is not there or is going, and some namespaces never go."""

from __future__ import annotations

from shoal.cluster.apiserver.admission.attributes import Attributes
from shoal.cluster.apiserver.admission.refusing import refuse
from shoal.cluster.apiserver.admission.scope import WRITE, Scope
from shoal.cluster.apiserver.reader import Reader
from shoal.cluster.apiserver.refusals import forbidden, not_found
from shoal.kube.admission.wire import Operation
from shoal.kube.errors import Cause

IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
"""The namespaces that the cluster cannot be without."""

_REVIEWS = "localsubjectaccessreviews.authorization.k8s.io"


class NamespaceLifecycle:
    """Guards namespaces, and what is put into them."""

    mutates = Scope(operations=WRITE | {Operation.DELETE}, subresources=None)
    validates = None

    def __init__(self, state: Reader) -> None:
        self._state = state

    async def mutate(self, request: Attributes) -> None:
        """Refuses; it comes before all mutations, so that they need not look."""
        if request.kind.storage == "namespaces":
            if request.operation is Operation.DELETE and request.name in IMMORTAL:
                raise forbidden("namespaces", "", request.name, "this namespace may not be deleted")
            return
        namespace = request.namespace
        # Who may ask about permissions shall not learn from the answer which namespaces there are.
        if not namespace or request.operation is Operation.DELETE or request.kind.storage == _REVIEWS:
            return
        found = self._state.get("namespaces", "", namespace)
        if found is None:
            raise not_found("namespaces", "", namespace)
        if request.operation is Operation.CREATE and (found.get("status") or {}).get("phase") == "Terminating":
            raise refuse(
                request,
                f"unable to create new content in namespace {namespace} because it is being terminated",
                causes=[
                    Cause(
                        reason="NamespaceTerminating",
                        message=f"namespace {namespace} is being terminated",
                        field="metadata.namespace",
                    )
                ],
            )

    async def validate(self, request: Attributes) -> None:
        """Nothing is left to say."""
