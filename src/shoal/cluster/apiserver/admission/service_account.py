"""ServiceAccount: every pod has an account of its namespace, and a token of it mounted where programs look for one."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from typing import Any

from shoal.api.meta import RandomSource, generate_name
from shoal.cluster.apiserver.admission.attributes import Attributes
from shoal.cluster.apiserver.admission.refusing import refuse
from shoal.cluster.apiserver.admission.scope import CREATE, WRITE, Scope, scope
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.reader import Reader

MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN_SECONDS = 3607
"""An hour, and a little by which such a token can be told from one that was asked for."""

_MIRROR = "kubernetes.io/config.mirror"
_ENFORCES_SECRETS = "kubernetes.io/enforce-mountable-secrets"
_VOLUME = "kube-api-access-"
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_ATTEMPTS = 10


class ServiceAccounts:
    """Gives pods their account, its token and its pull secrets."""

    mutates = scope("pods")
    validates = Scope(
        storages=frozenset({"pods"}), operations=WRITE, subresources=frozenset({"", "ephemeralcontainers"})
    )

    def __init__(self, state: Reader, *, source: RandomSource | None = None, pause: float = 0.15) -> None:
        self._state = state
        self._source = source or random
        self._pause = pause

    async def mutate(self, request: Attributes) -> None:
        """Completes a new pod."""
        pod = request.object or {}
        if not _is_mirror(pod):
            spec = pod.setdefault("spec", {})
            name = spec.get("serviceAccountName") or "default"
            spec["serviceAccountName"] = spec["serviceAccount"] = name
            account = await self._account(request, name)
            if _mounts_token(account, spec):
                self._mount(spec)
            if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
                spec["imagePullSecrets"] = [{"name": each.get("name", "")} for each in account["imagePullSecrets"]]
        await self.validate(request)

    async def validate(self, request: Attributes) -> None:
        """Refuses a pod without an account, and one that uses secrets which are not its account's."""
        is_ephemeral = request.subresource == "ephemeralcontainers"
        if not is_ephemeral and request.operation not in CREATE:
            return
        pod = request.object or {}
        if not is_ephemeral and _is_mirror(pod):
            _check_mirror(request, pod)
            return
        spec = pod.get("spec") or {}
        name = spec.get("serviceAccountName")
        if not name:
            own = (pod.get("metadata") or {}).get("name", "")
            raise refuse(request, f"no service account specified for pod {request.namespace}/{own}")
        account = await self._account(request, name)
        annotations = (account.get("metadata") or {}).get("annotations") or {}
        if annotations.get(_ENFORCES_SECRETS) in _TRUE:
            for problem in _foreign_secrets(account, spec, is_ephemeral=is_ephemeral):
                raise refuse(request, problem)

    async def _account(self, request: Attributes, name: str) -> Object:
        # The default account follows its namespace by a moment.
        for attempt in range(_ATTEMPTS if name == "default" else 1):
            if attempt:
                await asyncio.sleep(self._pause)
            if (account := self._state.get("serviceaccounts", request.namespace, name)) is not None:
                return account
        told = f'error looking up service account {request.namespace}/{name}: serviceaccount "{name}" not found'
        raise refuse(request, told)

    def _mount(self, spec: dict[str, Any]) -> None:
        volumes = spec.get("volumes") or []
        present = next((each["name"] for each in volumes if each.get("name", "").startswith(_VOLUME)), None)
        name = present or generate_name(_VOLUME, self._source)
        is_needed = False
        for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
            mounts = container.get("volumeMounts") or []
            if any(mount.get("mountPath") == MOUNT_PATH for mount in mounts):
                continue
            container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}]
            is_needed = True
        if is_needed and present is None:
            spec["volumes"] = [*volumes, {"name": name, "projected": token_volume()}]


def token_volume() -> dict[str, Any]:
    """The projected volume that holds a token, the authority to trust, and the name of the namespace."""
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [namespace]}},
        ],
        "defaultMode": 420,
    }


def _is_mirror(pod: Object) -> bool:
    return _MIRROR in ((pod.get("metadata") or {}).get("annotations") or {})


def _mounts_token(account: Object, spec: dict[str, Any]) -> bool:
    for place in (spec, account):
        chosen = place.get("automountServiceAccountToken")
        if chosen is not None:
            return bool(chosen)
    return True


def _check_mirror(request: Attributes, pod: Object) -> None:
    spec = pod.get("spec") or {}
    if spec.get("serviceAccountName"):
        raise refuse(request, "a mirror pod may not reference service accounts")
    volumes = spec.get("volumes") or ()
    if any(each.get("secret") for each in volumes) or spec.get("imagePullSecrets"):
        raise refuse(request, "a mirror pod may not reference secrets")
    for _, _, _ in _secrets_of_containers(spec, ("containers", "initContainers")):
        raise refuse(request, "a mirror pod may not reference secrets")
    for volume in volumes:
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken") is not None:
                raise refuse(request, "a mirror pod may not use ServiceAccountToken volume projections")


def _foreign_secrets(account: Object, spec: dict[str, Any], *, is_ephemeral: bool) -> Iterable[str]:
    name = account["metadata"]["name"]
    known = {each.get("name") for each in account.get("secrets") or ()}
    end = f"is not allowed because service account {name} does not reference that"
    lists = ("ephemeralContainers",) if is_ephemeral else ("initContainers", "containers")
    if not is_ephemeral:
        for volume in spec.get("volumes") or ():
            secret = volume.get("secret")
            if secret is not None and secret.get("secretName") not in known:
                yield f'volume with secret.secretName="{secret.get("secretName", "")}" {end} secret'
    for container, place, used in _secrets_of_containers(spec, lists):
        if used not in known:
            yield f'{container} with {place} referencing secret.secretName="{used}" {end} secret'
    if not is_ephemeral:
        pulls = {each.get("name") for each in account.get("imagePullSecrets") or ()}
        for index, reference in enumerate(spec.get("imagePullSecrets") or ()):
            if reference.get("name") not in pulls:
                yield f'imagePullSecrets[{index}].name="{reference.get("name", "")}" {end} imagePullSecret'


_WORDS = {
    "containers": "container",
    "initContainers": "init container",
    "ephemeralContainers": "ephemeral container",
}


def _secrets_of_containers(spec: dict[str, Any], lists: Iterable[str]) -> Iterable[tuple[str, str, str]]:
    """The container, the place in it and the name, for each secret that the environment of a container comes from."""
    for field in lists:
        for container in spec.get(field) or ():
            named = f"{_WORDS[field]} {container.get('name', '')}"
            for variable in container.get("env") or ():
                if reference := (variable.get("valueFrom") or {}).get("secretKeyRef"):
                    yield named, f"envVar {variable.get('name', '')}", reference.get("name", "")
            for source in container.get("envFrom") or ():
                if reference := source.get("secretRef"):
                    yield named, "envFrom", reference.get("name", "")
