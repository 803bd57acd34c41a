"""Claims and volumes: the default class, the finalizers that keep used ones, and which claims may grow."""

from __future__ import annotations

from shoal.api.meta import ZERO_QUANTITY, Quantity, parse_quantity
from shoal.cluster.apiserver.admission.attributes import Attributes
from shoal.cluster.apiserver.admission.refusing import refuse
from shoal.cluster.apiserver.admission.scope import UPDATE, scope
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.reader import Reader

_CLASSES = "storageclasses.storage.k8s.io"
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_IS_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_FINALIZERS = {
    "persistentvolumes": "kubernetes.io/pv-protection",
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "volumeattributesclasses.storage.k8s.io": "kubernetes.io/vac-protection",
}


class DefaultStorageClass:
    """Gives a claim that names no class the default one."""

    mutates = scope("persistentvolumeclaims")
    validates = None

    def __init__(self, state: Reader) -> None:
        self._state = state

    async def mutate(self, request: Attributes) -> None:
        """Sets the class; an empty name is a choice."""
        claim = request.object or {}
        spec = claim.setdefault("spec", {})
        if spec.get("storageClassName") is not None or _OLD_CLASS in _annotations(claim):
            return
        defaults = [each for each in self._state.list(_CLASSES) if _is_default(each)]
        if defaults:
            # Of several the newest counts, and of those the first by name.
            defaults.sort(key=lambda each: each["metadata"]["name"])
            newest = max(defaults, key=lambda each: str(each["metadata"].get("creationTimestamp") or ""))
            spec["storageClassName"] = newest["metadata"]["name"]

    async def validate(self, request: Attributes) -> None:
        """Whether the class exists is found out when a volume is needed."""


class StorageObjectInUseProtection:
    """Marks volumes and claims, so that one in use is not deleted before its user."""

    mutates = scope(*_FINALIZERS)
    validates = None

    async def mutate(self, request: Attributes) -> None:
        """Adds the finalizer."""
        metadata = (request.object or {}).setdefault("metadata", {})
        finalizer = _FINALIZERS[request.kind.storage]
        held = metadata.get("finalizers") or []
        if finalizer not in held:
            metadata["finalizers"] = [*held, finalizer]

    async def validate(self, request: Attributes) -> None:
        """Nothing to refuse."""


class PersistentVolumeClaimResize:
    """Lets a claim grow only where its class says that volumes can."""

    mutates = None
    validates = scope("persistentvolumeclaims", operations=UPDATE)

    def __init__(self, state: Reader) -> None:
        self._state = state

    async def mutate(self, request: Attributes) -> None:
        """Nothing to complete."""

    async def validate(self, request: Attributes) -> None:
        """Refuses growth of what is not bound, or cannot grow."""
        new, old = request.object or {}, request.old or {}
        if _asked(new) <= _asked(old):
            return
        if (old.get("status") or {}).get("phase") != "Bound":
            raise refuse(request, "Only bound persistent volume claims can be expanded")
        name = storage_class(new)
        chosen = self._state.get(_CLASSES, "", name) if name and name == storage_class(old) else None
        if chosen is None or not chosen.get("allowVolumeExpansion"):
            raise refuse(
                request,
                "only dynamically provisioned pvc can be resized and "
                "the storageclass that provisions the pvc must support resize",
            )


def storage_class(claim: Object) -> str:
    """The class that a claim names, in its field or, as long ago, in an annotation."""
    named = _annotations(claim).get(_OLD_CLASS) or (claim.get("spec") or {}).get("storageClassName")
    return named or ""


def _annotations(of: Object) -> dict[str, str]:
    return (of.get("metadata") or {}).get("annotations") or {}


def _is_default(storage: Object) -> bool:
    annotations = _annotations(storage)
    return any(annotations.get(name) == "true" for name in _IS_DEFAULT)


def _asked(claim: Object) -> Quantity:
    asked = ((((claim.get("spec") or {}).get("resources")) or {}).get("requests") or {}).get("storage")
    return ZERO_QUANTITY if asked is None else parse_quantity(asked)
