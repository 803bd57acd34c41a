"""When to make which certificate, so that nobody who trusts our bundle ever meets one it cannot verify.

A serving certificate is renewed under the same authority, which no client notices. The authority is renewed in three
steps, each of which waits until the last one has surely reached every replica and every API server (``settle``):

1. the new authority joins the bundle; the old one still vouches for what is served;
2. a certificate of the new authority is served; both are in the bundle;
3. the old authority leaves the bundle.

Which step is next follows from the certificates themselves (who issued what, and when), so that any replica can take it
and none has to remember anything. A certificate that is already useless (expired, of other names, unreadable) is
replaced at once: waiting could not make it better.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shoal.kube.certificates import (
    TWO_THIRDS,
    CertificateError,
    KeyPair,
    age,
    bundle,
    covers,
    is_issued_by,
    is_matching,
    is_valid_at,
    make_authority,
    make_serving,
    needs_rotation,
    separate,
)


@dataclass(frozen=True, kw_only=True)
class Material:
    """Everything that replicas share."""

    serving: KeyPair
    authority: KeyPair
    """The newest authority: it signs what is made from now on."""
    authorities: bytes
    """What clients must trust: the newest authority, and older ones as long as something of theirs may be served."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """For whom certificates are made, and for how long."""

    names: tuple[str, ...]
    authority_name: str = "shoal-webhook-ca"
    authority_lifetime: timedelta = timedelta(days=3650)
    serving_lifetime: timedelta = timedelta(days=365)
    rotate_after: float = TWO_THIRDS
    """The share of its life after which a certificate is renewed."""
    settle: timedelta = timedelta(days=1)
    """How long each step of an authority's renewal is given to reach everyone."""

    def __post_init__(self) -> None:
        spare = self.serving_lifetime * (1 - self.rotate_after)
        if self.settle >= spare:
            raise ValueError(f"certificates are renewed {spare} before they end, too late for steps of {self.settle}")


def wanted_material(current: Material | None, policy: Policy, *, now: datetime) -> Material:
    """What should be served and trusted now; ``current`` itself where nothing has to change."""
    if current is None or not _is_usable(current.authority, now):
        return _made_anew(current, policy, now)
    material = _with_fresh_authority(current, policy, now)
    material = _with_fresh_serving(material, policy, now)
    return _without_spent_authorities(material, policy, now)


def _made_anew(current: Material | None, policy: Policy, now: datetime) -> Material:
    authority = make_authority(policy.authority_name, now=now, lifetime=policy.authority_lifetime)
    older = _still_valid(current.authorities, now) if current is not None else []
    return Material(
        serving=_serving_of(authority, policy, now),
        authority=authority,
        authorities=bundle(authority.certificate, *older),
    )


def _with_fresh_authority(material: Material, policy: Policy, now: datetime) -> Material:
    if not needs_rotation(material.authority.certificate, now, after=policy.rotate_after):
        return material
    authority = make_authority(policy.authority_name, now=now, lifetime=policy.authority_lifetime)
    older = _still_valid(material.authorities, now)
    return replace(material, authority=authority, authorities=bundle(authority.certificate, *older))


def _with_fresh_serving(material: Material, policy: Policy, now: datetime) -> Material:
    serving, authority = material.serving, material.authority
    if _is_usable(serving, now) and covers(serving.certificate, policy.names):
        if is_issued_by(serving.certificate, authority.certificate):
            is_due = needs_rotation(serving.certificate, now, after=policy.rotate_after)
        elif _is_vouched_for(serving, material.authorities):
            is_due = age(authority.certificate, now) >= policy.settle
        else:
            is_due = True
        if not is_due:
            return material
    return replace(material, serving=_serving_of(authority, policy, now))


def _without_spent_authorities(material: Material, policy: Policy, now: datetime) -> Material:
    newest = material.authority.certificate
    is_settled = is_issued_by(material.serving.certificate, newest) and (
        age(material.serving.certificate, now) >= policy.settle
    )
    older = [] if is_settled else _still_valid(material.authorities, now)
    wanted = bundle(newest, *older)
    return material if wanted == material.authorities else replace(material, authorities=wanted)


def _serving_of(authority: KeyPair, policy: Policy, now: datetime) -> KeyPair:
    return make_serving(authority, policy.names, now=now, lifetime=policy.serving_lifetime)


def _is_usable(pair: KeyPair, now: datetime) -> bool:
    return is_matching(pair) and is_valid_at(pair.certificate, now)


def _is_vouched_for(serving: KeyPair, authorities: bytes) -> bool:
    return any(is_issued_by(serving.certificate, authority) for authority in separate(authorities))


def _still_valid(authorities: bytes, now: datetime) -> Iterable[bytes]:
    try:
        return [authority for authority in separate(authorities) if is_valid_at(authority, now)]
    except CertificateError:
        return []
