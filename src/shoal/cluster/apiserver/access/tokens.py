"""ServiceAccount tokens: what they say, how they are signed, and how others can check them.

The key is an elliptic one and the signature ES256, where kube-apiserver is most often given an RSA key: both are
allowed there, every library that reads one reads the other, and a new key costs a thousandth of the time, which is part
of the server's first start. The other engine of this project signs with the same key.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from shoal.api.meta import format_time
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.reader import Reader
from shoal.cluster.apiserver.refusals import bad_request, conflict, invalid, not_found
from shoal.kube.admission import fields

ISSUER = "https://kubernetes.default.svc.cluster.local"
LEGACY_ISSUER = "kubernetes/serviceaccount"
LEGACY_CLAIM = "kubernetes.io/serviceaccount"
ALGORITHM = "ES256"

DEFAULT_SECONDS = 3600
LEAST_SECONDS = 600
MOST_SECONDS = 1 << 32
# What the pods of old clients ask for: they do not read their token again, so it is given longer than it says.
_PROJECTED_SECONDS = 3607
_EXTENDED_SECONDS = 365 * 24 * 3600

_GROUP = "authentication.k8s.io"
_KIND = "TokenRequest"
_BOUND = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


class TokenSigner:
    """Makes and reads the tokens of one cluster."""

    def __init__(self, key: bytes, *, issuer: str = ISSUER, audiences: Sequence[str] = (ISSUER,)) -> None:
        private = serialization.load_pem_private_key(key, password=None)
        if not isinstance(private, ec.EllipticCurvePrivateKey):
            raise TypeError("the key that signs ServiceAccount tokens must be an elliptic one, on P-256")
        self.issuer = issuer
        self.audiences = tuple(audiences)
        self._private = private
        self._public = private.public_key()
        self._key_id = _key_id(self._public)

    def signed(self, claims: Mapping[str, Any], *, issuer: str | None = None) -> str:
        """A token with these claims."""
        whole = {**claims, "iss": issuer or self.issuer}
        headers = {"kid": self._key_id, "typ": None}
        return jwt.encode(whole, self._private, ALGORITHM, headers=headers)

    def verified(self, token: str) -> dict[str, Any]:
        """The claims of a token with our signature; raises jwt.InvalidTokenError.

        Times and audiences are not looked at: they are a matter of when and by whom it is asked.
        """
        unchecked = {"verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_aud": False}
        claims: dict[str, Any] = jwt.decode(token, self._public, [ALGORITHM], options=unchecked)  # type: ignore[arg-type]
        return claims

    def keys(self) -> Object:
        """The body of ``/openid/v1/jwks``: what others verify our tokens with."""
        numbers = self._public.public_numbers()
        return {
            "keys": [
                {
                    "use": "sig",
                    "kty": "EC",
                    "kid": self._key_id,
                    "crv": "P-256",
                    "alg": ALGORITHM,
                    "x": _text(numbers.x.to_bytes(32, "big")),
                    "y": _text(numbers.y.to_bytes(32, "big")),
                }
            ]
        }

    def configuration(self, address: str) -> Object:
        """The body of ``/.well-known/openid-configuration``; the address is the server's, as ``https://host:port``."""
        return {
            "issuer": self.issuer,
            "jwks_uri": f"{address}/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        }

    def issue(
        self, request: Object, *, namespace: str, name: str, state: Reader, now: datetime, new_id: Callable[[], str]
    ) -> Object:
        """Answers a TokenRequest for an account: the same object, completed, with the token in its status."""
        metadata = dict(request.get("metadata") or {})
        if metadata.get("name", name) not in ("", name):
            problem = fields.invalid(
                "metadata.name", metadata["name"], "must match the service account name if specified"
            )
            raise invalid(_KIND, _GROUP, name, [problem])
        account = state.get("serviceaccounts", namespace, name)
        if account is None:
            raise not_found("serviceaccounts", "", name)
        uid = account["metadata"]["uid"]
        if metadata.get("uid") not in (None, "", uid):
            why = f"does not match the UID of the service account ({uid})"
            raise conflict(_KIND, _GROUP, name, f"the UID in the token request ({metadata['uid']}) {why}")
        metadata |= {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": format_time(now)}

        spec = dict(request.get("spec") or {})
        spec["audiences"] = spec.get("audiences") or list(self.audiences)
        spec["expirationSeconds"] = seconds = _seconds(spec)
        spec.setdefault("boundObjectRef", None)
        bound = _bound(spec["boundObjectRef"], namespace, name, state) if spec["boundObjectRef"] else {}

        lifetime, warn_after = seconds, None
        is_for_us = set(spec["audiences"]) <= set(self.audiences)
        if "pod" in bound and seconds == _PROJECTED_SECONDS and is_for_us:
            lifetime, warn_after = _EXTENDED_SECONDS, int(now.timestamp()) + seconds
        since = int(now.timestamp())
        about: Object = {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}, **bound}
        if warn_after is not None:
            about["warnafter"] = warn_after
        claims = {
            "aud": spec["audiences"],
            "exp": since + lifetime,
            "iat": since,
            "jti": new_id(),
            "kubernetes.io": about,
            "nbf": since,
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        status = {
            "token": self.signed(claims),
            "expirationTimestamp": format_time(now + timedelta(seconds=seconds)),
        }
        return {
            "kind": _KIND,
            "apiVersion": f"{_GROUP}/v1",
            "metadata": metadata,
            "spec": spec,
            "status": status,
        }

    def legacy_token(self, *, namespace: str, account: str, uid: str, secret: str) -> str:
        """The token of an account that lies in a Secret: it has no end of its own, and goes with the Secret."""
        claims = {
            f"{LEGACY_CLAIM}/namespace": namespace,
            f"{LEGACY_CLAIM}/secret.name": secret,
            f"{LEGACY_CLAIM}/service-account.name": account,
            f"{LEGACY_CLAIM}/service-account.uid": uid,
            "sub": f"system:serviceaccount:{namespace}:{account}",
        }
        return self.signed(claims, issuer=LEGACY_ISSUER)

    def secret_data(self, account: Object, secret: Object, authority: bytes) -> dict[str, str]:
        """What belongs into a Secret of type kubernetes.io/service-account-token: its data, in base64."""
        identity = account["metadata"]
        namespace = identity["namespace"]
        token = self.legacy_token(
            namespace=namespace, account=identity["name"], uid=identity["uid"], secret=secret["metadata"]["name"]
        )
        content = {"ca.crt": authority, "namespace": namespace.encode(), "token": token.encode()}
        return {key: base64.b64encode(value).decode() for key, value in content.items()}


def _seconds(spec: Object) -> int:
    seconds: int = DEFAULT_SECONDS if spec.get("expirationSeconds") is None else spec["expirationSeconds"]
    problem = ""
    if seconds < LEAST_SECONDS:
        problem = "may not specify a duration less than 10 minutes"
    elif seconds > MOST_SECONDS:
        problem = "may not specify a duration larger than 2^32 seconds"
    if problem:
        raise invalid(_KIND, _GROUP, "", [fields.invalid("spec.expirationSeconds", seconds, problem)])
    return seconds


def _bound(reference: Object, namespace: str, account: str, state: Reader) -> Object:
    """The claims that name the object with which the token ends."""
    kind, name = reference.get("kind", ""), reference.get("name", "")
    group, _, version = reference.get("apiVersion", "").rpartition("/")
    if group or kind not in _BOUND:
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    resource = _BOUND[kind]
    found = state.get(resource, "" if kind == "Node" else namespace, name)
    if found is None:
        raise not_found(resource, "", name)
    uid = found["metadata"]["uid"]
    bound: Object = {kind.lower(): {"name": name, "uid": uid}}
    if kind == "Pod":
        spec = found.get("spec") or {}
        if spec.get("serviceAccountName", "") != account:
            why = "to pod running with different serviceaccount name."
            raise bad_request(f'cannot bind token for serviceaccount "{account}" {why}')
        if node_name := spec.get("nodeName"):
            node = state.get("nodes", "", node_name)
            bound["node"] = {"name": node_name} | ({"uid": node["metadata"]["uid"]} if node else {})
    if reference.get("uid") not in (None, "", uid):
        why = "does not match the UID in record. The object might have been deleted and then recreated"
        raise conflict(kind, "", name, f"the UID in the bound object reference ({reference['uid']}) {why}")
    return bound


def _key_id(key: ec.EllipticCurvePublicKey) -> str:
    encoded = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return _text(hashlib.sha256(encoded).digest())


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
