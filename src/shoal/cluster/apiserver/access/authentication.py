"""Who makes a request: by client certificate, by bearer token, or by having come through the owner's own socket.

A token's signature is verified once and remembered; what the token depends on (its time, its account, the Pod, Secret
or Node that it is bound to) is looked at with every request, so a token ends with the object that it lives by.
"""

from __future__ import annotations

import hashlib
import hmac
import ssl
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.x509.oid import NameOID, ObjectIdentifier

from shoal.cluster.apiserver.access.account_tokens import AccountTokens, BadToken, Reviewed
from shoal.cluster.apiserver.access.credentials import Credentials
from shoal.cluster.apiserver.access.user import User
from shoal.cluster.apiserver.access.wording import aggregate
from shoal.cluster.apiserver.reader import Reader
from shoal.cluster.apiserver.refusals import unauthorized
from shoal.cluster.keyring import MASTERS

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
ANONYMOUS = User(name="system:anonymous", groups=(UNAUTHENTICATED,))
ADMIN = User(name="admin", uid="admin", groups=(MASTERS, AUTHENTICATED))

_UID = ObjectIdentifier("1.3.6.1.4.1.57683.2")
_MOST_CERTIFICATES = 1024


class _Subject(NamedTuple):
    """Whom a certificate is for, and until when (in seconds since 1970)."""

    user: User | None
    since: float
    until: float


class Authenticator:
    """Finds the user behind a request's credentials."""

    def __init__(self, credentials: Credentials, state: Reader, *, clock: Callable[[], datetime]) -> None:
        self._admin_token = credentials.admin_token
        self._user_tokens = credentials.user_tokens
        self._account_tokens = AccountTokens(credentials.signer, state)
        self._clock = clock
        self._subjects: dict[bytes, _Subject] = {}
        self.audiences = credentials.signer.audiences
        """Whom tokens must be made for to be taken here."""

    def authenticate(
        self,
        *,
        authorization: str | None,
        peer_certificate: bytes | Mapping[str, Any] | None = None,
        trusted_socket: bool = False,
    ) -> User | None:
        """The user, or None for one who shows nothing; raises Refused (401) where what is shown is no good.

        The certificate has been verified by the TLS layer; in its DER form it also tells which one it is. A connection
        that only the owner can make is the administrator's where it brings no credentials of its own.
        """
        is_bad = False
        if peer_certificate:
            subject = self._subject(peer_certificate)
            if subject.since <= self._clock().timestamp() <= subject.until:
                if subject.user is not None:
                    return subject.user
            else:
                is_bad = True
        token = _bearer(authorization)
        if token:
            try:
                return self.review(token).user
            except BadToken as error:
                raise unauthorized() from error
        if is_bad:
            raise unauthorized()
        return ADMIN if trusted_socket else None

    def review(self, token: str, audiences: Sequence[str] = ()) -> Reviewed:
        """Whom a token stands for, for those who ask for these audiences (ours by default); raises BadToken."""
        wanted = audiences or self.audiences
        if user := self._named(token):
            shared = tuple(each for each in self.audiences if each in wanted)
            if shared:
                return Reviewed(user, shared)
            raise BadToken("invalid bearer token")
        try:
            return self._account_tokens.review(token, wanted, self.audiences, self._clock())
        except BadToken as error:
            # The real server asks twice, first for tokens of its own, and tells of both.
            raise BadToken(aggregate(["invalid bearer token", str(error)])) from error

    def _named(self, token: str) -> User | None:
        """The user of one of the cluster's own tokens, which know neither expiry nor audience."""
        if not token.isascii():
            return None
        if hmac.compare_digest(token, self._admin_token):
            return ADMIN
        user = self._user_tokens.user(token)
        return User(name=user.name, uid=user.name, groups=(*user.groups, AUTHENTICATED)) if user else None

    def _subject(self, certificate: bytes | Mapping[str, Any]) -> _Subject:
        if not isinstance(certificate, bytes):
            return _described_subject(certificate)
        subject = self._subjects.get(certificate)
        if subject is None:
            if len(self._subjects) >= _MOST_CERTIFICATES:
                self._subjects.clear()
            subject = self._subjects[certificate] = _encoded_subject(certificate)
        return subject


def _bearer(authorization: str | None) -> str:
    scheme, _, rest = (authorization or "").strip().partition(" ")
    return rest.partition(" ")[0] if scheme.lower() == "bearer" else ""


def _encoded_subject(encoded: bytes) -> _Subject:
    certificate = x509.load_der_x509_certificate(encoded)

    def values(name: ObjectIdentifier) -> list[str]:
        return [str(each.value) for each in certificate.subject.get_attributes_for_oid(name)]

    user = _user(
        values(NameOID.COMMON_NAME),
        values(NameOID.ORGANIZATION_NAME),
        values(_UID),
        {CREDENTIAL_ID: (f"X509SHA256={hashlib.sha256(encoded).hexdigest()}",)},
    )
    since, until = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return _Subject(user, since.timestamp(), until.timestamp())


def _described_subject(described: Mapping[str, Any]) -> _Subject:
    """The same of a certificate as ``ssl`` describes it, which lacks what would identify it."""
    values: dict[str, list[str]] = {}
    for relative in described.get("subject", ()):
        for name, value in relative:
            values.setdefault(name, []).append(value)
    user = _user(
        values.get("commonName", []), values.get("organizationName", []), values.get(_UID.dotted_string, []), {}
    )
    dates = [ssl.cert_time_to_seconds(described[each]) for each in ("notBefore", "notAfter")]
    return _Subject(user, dates[0], dates[1])


def _user(
    names: Sequence[str], groups: Sequence[str], uids: Sequence[str], extra: Mapping[str, tuple[str, ...]]
) -> User | None:
    if not names or not names[-1]:
        return None
    name = names[-1]
    if AUTHENTICATED not in groups and UNAUTHENTICATED not in groups and name != ANONYMOUS.name:
        groups = (*groups, AUTHENTICATED)
    return User(name=name, uid=uids[0] if uids else "", groups=tuple(groups), extra=extra)
