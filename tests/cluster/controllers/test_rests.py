"""Owners of many children are not looked at for each of their changes."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.api.apps import ReplicaSet
from shoal.cluster.controllers.rests import MANY, PER_SECOND, Rests
from shoal.kube import Key


def an_owner(uid: str = "u", generation: int = 1) -> ReplicaSet:
    metadata: dict[str, Any] = {"name": "web", "namespace": "default", "uid": uid, "generation": generation}
    return msgspec.convert({"metadata": metadata}, ReplicaSet)


def test_an_owner_rests_the_longer_the_more_it_has() -> None:
    clock = 100.0
    rests = Rests(clock=lambda: clock)
    rests.begin(an_owner(), children=MANY - 1)
    assert rests.left(an_owner()) == 0
    rests.begin(an_owner(), children=PER_SECOND)
    assert rests.left(an_owner()) == 1.0
    clock += 1.0
    assert rests.left(an_owner()) == 0


def test_a_new_wish_a_new_owner_and_one_that_went_do_not_wait() -> None:
    rests = Rests(clock=lambda: 100.0)
    rests.begin(an_owner(), children=PER_SECOND)
    assert rests.left(an_owner(generation=2)) == 0
    assert rests.left(an_owner(uid="v")) == 0
    rests.forget(Key("default", "web"))
    assert rests.left(an_owner()) == 0
