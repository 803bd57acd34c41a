"""Random sequences of requests get the same answers, objects and events from the embedded server and a real one.

Sequences are the same in every run, and a failing one is told as it is. SHOAL_FUZZ_SEED=random explores others and
makes those that fail small; SHOAL_FUZZ_EXAMPLES says how many a kind.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from shoal.cluster.kubernetes import Binaries
from tests.conformance.fuzz.duel import Duel
from tests.conformance.fuzz.kinds import DEFINITION, SUBJECTS
from tests.conformance.fuzz.sequences import sequences
from tests.conformance.fuzz.steps import Step
from tests.conformance.objects import DEFINITIONS
from tests.conformance.real import real_server
from tests.conformance.story import get, post
from tests.support.clusters.embedded import Embedded

EXAMPLES = int(os.environ.get("SHOAL_FUZZ_EXAMPLES", "20"))
IS_FIXED = os.environ.get("SHOAL_FUZZ_SEED", "") != "random"
_ESTABLISHED_WITHIN = 20.0
_ACCEPTED = 0.2


@pytest.fixture(scope="module")
def duel(binaries: Binaries, embedded: Embedded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Duel]:
    with real_server(binaries, tmp_path_factory.mktemp("fuzz")) as real:
        duel = Duel(real, embedded)
        define(duel)
        yield duel
        duel.close()


def define(duel: Duel) -> None:
    """Makes the custom kind on both, and returns when both serve it."""
    for made in duel.both(post(DEFINITIONS, DEFINITION)):
        assert made.status in (201, 409), made.body
    deadline = time.monotonic() + _ESTABLISHED_WITHIN
    for version in DEFINITION["spec"]["versions"]:
        path = f"/apis/{DEFINITION['spec']['group']}/{version['name']}/shapes"
        while any(answer.status != 200 for answer in duel.both(get(path))):
            assert time.monotonic() < deadline, f"{path} is not served"
            time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_both_servers_answer_alike(subject: str, duel: Duel) -> None:
    kind = SUBJECTS[subject].kind

    @settings(
        max_examples=EXAMPLES,
        derandomize=IS_FIXED,
        phases=[Phase.generate] if IS_FIXED else [Phase.generate, Phase.shrink],
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )
    @given(st.data())
    def agree(data: st.DataObject) -> None:
        steps = data.draw(sequences(SUBJECTS[subject]))
        found = duel.difference(kind, steps)
        assert not found, "\n".join(["", *(f"  {number}. {step}" for number, step in enumerate(steps, 1)), found])

    steps, accepted = duel.steps, duel.accepted
    agree()
    share = (duel.accepted - accepted) / (duel.steps - steps)
    assert share > _ACCEPTED, f"too few of the requests change anything to say much: {share:.0%}"


def test_servers_that_answer_otherwise_are_told_apart(embedded: Embedded) -> None:
    # The second to create an object of one server hears that there is one.
    duel = Duel(embedded, embedded, names="same")
    found = duel.difference(SUBJECTS["config-map"].kind, [Step("create")])
    duel.close()
    assert "AlreadyExists" in found
