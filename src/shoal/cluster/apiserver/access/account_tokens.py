"""ServiceAccount tokens as credentials: whom one stands for, as long as all that it depends on is there.

There are two sorts: those of TokenRequest, which expire and may be bound to an object, and the older ones that lie in a
Secret, which last as long as the Secret does.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import jwt
import msgspec

from shoal.api.meta import parse_time
from shoal.cluster.apiserver.access.tokens import LEGACY_CLAIM, LEGACY_ISSUER, TokenSigner
from shoal.cluster.apiserver.access.user import User
from shoal.cluster.apiserver.access.wording import quoted, quoted_list
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.reader import Reader

INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"
LEEWAY = timedelta(minutes=1)
"""How far the clocks of the two who look at a token may be apart."""

_EXTRA = "authentication.kubernetes.io"
_MOST_TOKENS = 4096
_MALFORMED = "invalid bearer token"
_INVALIDATED = "service account token has been invalidated"


class BadToken(Exception):
    """A token is not taken; says why, in Kubernetes' words."""


class Reviewed(NamedTuple):
    """Whom a token stands for, and for which of the audiences asked for."""

    user: User
    audiences: tuple[str, ...]


class _Verified(NamedTuple):
    claims: Mapping[str, Any]
    user: User


class AccountTokens:
    """Reads the tokens of a cluster's ServiceAccounts."""

    def __init__(self, signer: TokenSigner, state: Reader) -> None:
        self._signer = signer
        self._state = state
        self._verified: dict[str, _Verified] = {}

    def review(self, token: str, wanted: Sequence[str], own: Sequence[str], now: datetime) -> Reviewed:
        """Whom a token stands for; a token without audiences is for our own. Raises BadToken."""
        verified = self._verified.get(token)
        if verified is None:
            verified = self._read(token)
        claims = verified.claims
        meant = claims.get("aud") or own
        shared = tuple(each for each in meant if each in wanted)
        if not shared:
            problem = f"is invalid for the target audiences {quoted_list(wanted)}"
            raise BadToken(f"token audiences {quoted_list(meant)} {problem}")
        if claims["iss"] == LEGACY_ISSUER:
            self._check_legacy(token, claims)
        else:
            self._check(claims, now)
        return Reviewed(verified.user, shared)

    def _read(self, token: str) -> _Verified:
        if _issuer(token) not in (self._signer.issuer, LEGACY_ISSUER):
            raise BadToken(_MALFORMED)
        try:
            claims = self._signer.verified(token)
        except jwt.InvalidSignatureError as error:
            raise BadToken("go-jose/go-jose: error in cryptographic primitive") from error
        except (jwt.PyJWTError, RecursionError) as error:
            raise BadToken(_MALFORMED) from error
        user = _legacy_user(claims) if claims["iss"] == LEGACY_ISSUER else _user(claims)
        if len(self._verified) >= _MOST_TOKENS:
            del self._verified[next(iter(self._verified))]
        verified = self._verified[token] = _Verified(claims, user)
        return verified

    def _check(self, claims: Mapping[str, Any], now: datetime) -> None:
        moment, leeway = now.timestamp(), LEEWAY.total_seconds()
        if moment + leeway < claims.get("nbf", 0):
            raise BadToken("service account token is not valid yet")
        if moment - leeway > claims.get("exp", moment):
            raise BadToken("service account token has expired")
        if moment + leeway < claims.get("iat", 0):
            raise BadToken("service account token is issued in the future")
        about = claims["kubernetes.io"]
        namespace, account = about["namespace"], about["serviceaccount"]
        found = self._state.get("serviceaccounts", namespace, account["name"])
        if found is None:
            raise BadToken(f"serviceaccounts {quoted(account['name'])} not found")
        if found["metadata"]["uid"] != account["uid"]:
            shown = f"service account UID ({found['metadata']['uid']})"
            raise BadToken(f"{shown} does not match claim ({account['uid']})")
        if _is_gone(found, now):
            raise BadToken(f"service account {namespace}/{account['name']} has been deleted")
        for kind, storage, home in (
            ("secret", "secrets", namespace),
            ("pod", "pods", namespace),
            ("node", "nodes", ""),
        ):
            bound = about.get(kind)
            if bound is not None and not (kind == "node" and "pod" in about):
                self._check_bound(kind, self._state.get(storage, home, bound["name"]), bound, now)

    def _check_bound(self, kind: str, found: Object | None, bound: Mapping[str, str], now: datetime) -> None:
        if found is None:
            raise BadToken(_INVALIDATED)
        if found["metadata"]["uid"] != bound.get("uid"):
            shown = f"{kind} UID ({found['metadata']['uid']})"
            raise BadToken(f"{shown} does not match service account {kind} ref claim ({bound.get('uid', '')})")
        if _is_gone(found, now):
            raise BadToken(_INVALIDATED)

    def _check_legacy(self, token: str, claims: Mapping[str, Any]) -> None:
        namespace, name = claims[f"{LEGACY_CLAIM}/namespace"], claims[f"{LEGACY_CLAIM}/service-account.name"]
        secret_name, uid = claims[f"{LEGACY_CLAIM}/secret.name"], claims[f"{LEGACY_CLAIM}/service-account.uid"]
        secret = self._state.get("secrets", namespace, secret_name)
        if secret is None or "deletionTimestamp" in secret["metadata"]:
            raise BadToken("Token has been invalidated")
        kept = (secret.get("data") or {}).get("token", "")
        if not hmac.compare_digest(kept, base64.b64encode(token.encode()).decode()):
            raise BadToken("Token does not match server's copy")
        account = self._state.get("serviceaccounts", namespace, name)
        if account is None:
            raise BadToken(f"serviceaccounts {quoted(name)} not found")
        if "deletionTimestamp" in account["metadata"]:
            raise BadToken(f"ServiceAccount {namespace}/{name} has been deleted")
        if account["metadata"]["uid"] != uid:
            raise BadToken(f"ServiceAccount UID ({account['metadata']['uid']}) does not match claim ({uid})")
        if (secret["metadata"].get("labels") or {}).get(INVALID_SINCE):
            which = f"the token in secret {namespace}/{secret_name} for service account {namespace}/{name}"
            raise BadToken(
                f"{which} has been marked invalid. Use tokens from the TokenRequest API or manually created "
                f"secret-based tokens, or remove the '{INVALID_SINCE}' label from the secret to temporarily allow use "
                "of this token"
            )


def account_groups(namespace: str) -> tuple[str, str]:
    """The groups that every ServiceAccount of a namespace is in."""
    return "system:serviceaccounts", f"system:serviceaccounts:{namespace}"


def _user(claims: Mapping[str, Any]) -> User:
    about = claims["kubernetes.io"]
    namespace, account = about["namespace"], about["serviceaccount"]
    extra: dict[str, tuple[str, ...]] = {}
    if claims.get("jti"):
        extra[f"{_EXTRA}/credential-id"] = (f"JTI={claims['jti']}",)
    for kind in ("node", "pod"):
        bound = about.get(kind) or {}
        extra |= {f"{_EXTRA}/{kind}-{key}": (bound[key],) for key in ("name", "uid") if bound.get(key)}
    return _account(namespace, account["name"], account["uid"], extra)


def _legacy_user(claims: Mapping[str, Any]) -> User:
    said = {name: claims.get(f"{LEGACY_CLAIM}/{name}", "") for name in _LEGACY_NAMES}
    for name, words in (("sub", claims.get("sub", "")), *said.items()):
        if not words:
            raise BadToken(f"{_LEGACY_NAMES.get(name, name)} claim is missing")
    namespace, name = said["namespace"], said["service-account.name"]
    if claims["sub"] != f"system:serviceaccount:{namespace}:{name}":
        raise BadToken("sub claim is invalid")
    return _account(namespace, name, said["service-account.uid"], {})


_LEGACY_NAMES = {
    "namespace": "namespace",
    "secret.name": "secretName",
    "service-account.name": "serviceAccountName",
    "service-account.uid": "serviceAccountUID",
}


def _account(namespace: str, name: str, uid: str, extra: Mapping[str, tuple[str, ...]]) -> User:
    groups = (*account_groups(namespace), "system:authenticated")
    return User(name=f"system:serviceaccount:{namespace}:{name}", uid=uid, groups=groups, extra=extra)


def _is_gone(found: Object, now: datetime) -> bool:
    """Whether an object that waits for its finalizers has been deleted for longer than clocks may differ."""
    deleted = found["metadata"].get("deletionTimestamp")
    return deleted is not None and parse_time(deleted) < now - LEEWAY


def _issuer(token: str) -> str:
    """Who a token says has made it; not to be trusted before its signature is verified."""
    parts = token.split(".")
    if len(parts) != 3:
        return ""
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=="))
    except (ValueError, RecursionError):
        return ""
    return claims.get("iss", "") if isinstance(claims, dict) else ""
