"""MNNVL groups of a set, its scaling groups and its cliques."""

from __future__ import annotations

import pytest

from shoal.gangs.settings import GangSettings
from tests.gangs.admission.verdicts import CLIQUE, GROUP, changed, problems, sound

PLACES = {
    "set": "metadata.annotations",
    "scaling group": f"{GROUP}[0].annotations",
    "clique": f"{CLIQUE}[0].annotations",
}
ON = GangSettings(has_mnnvl=True)


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
class TestGroup:
    def test_it_is_a_dns_label(self, place: str) -> None:
        bad = changed(sound(), {f'{place}["grove.io/mnnvl-group"]': "Train 1"})
        assert problems(bad, settings=ON) == [
            f'{place}[grove.io/mnnvl-group]: Invalid value: "Train 1": must consist of lower case letters, digits and '
            "'-', and start and end with a letter or digit (for example 'my-name' or '123-abc'); or say \"none\""
        ]
        assert problems(changed(sound(), {f'{place}["grove.io/mnnvl-group"]': "train-1"}), settings=ON) == []

    def test_nobody_asks_for_it_where_it_is_off(self, place: str) -> None:
        asking = changed(sound(), {f'{place}["grove.io/mnnvl-group"]': "train"})
        assert problems(asking) == [
            f"{place}[grove.io/mnnvl-group]: Forbidden: MNNVL is off: turn on network.autoMNNVLEnabled of the "
            'operator, say "none" or leave it out'
        ]

    @pytest.mark.parametrize("settings", [GangSettings(), ON], ids=["off", "on"])
    def test_none_may_always_be_said(self, place: str, settings: GangSettings) -> None:
        out = changed(sound(), {f'{place}["grove.io/mnnvl-group"]': "none"})
        assert problems(out, settings=settings) == []

    def test_a_set_from_when_it_was_on_can_still_be_changed(self, place: str) -> None:
        old = changed(sound(), {f'{place}["grove.io/mnnvl-group"]': "train"})
        assert problems(changed(old, {"spec.replicas": 3}), old=old) == []
