"""Names and labels of what is made for a PodCliqueSet."""

from __future__ import annotations

import pytest

from shoal.api.grove import names
from shoal.api.meta.names import label_value_problems


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("web-0-workers", "web-0-workers", id="a plain name"),
        pytest.param("grove.io:pcs:web", "grove.io-pcs-web", id="a name with what no label may have"),
    ],
)
def test_an_objects_label_tells_its_name(name: str, expected: str) -> None:
    assert names.component_labels("web", name, names.ROLE_COMPONENT)[names.NAME_LABEL] == expected


def test_a_name_that_is_too_long_for_a_label_is_told_shortened() -> None:
    domains = [names.compute_domain("w" * 40, 0, group) for group in ("g" * 62 + "a", "g" * 62 + "b")]
    told = [names.component_labels("web", name, names.COMPUTE_DOMAIN_COMPONENT)[names.NAME_LABEL] for name in domains]
    assert [label_value_problems(value) for value in told] == [[], []]
    assert told[0] != told[1]


@pytest.mark.parametrize(
    ("value", "expected"),
    [("0", 0), ("12", 12), ("", None), ("-1", None), ("1.0", None), ("two", None), ("²", None), ("٣", None)],
)
def test_an_index_is_a_plain_number(value: str, expected: int | None) -> None:
    assert names.index_in({names.POD_INDEX_LABEL: value}, names.POD_INDEX_LABEL) == expected
    assert names.index_in({}, names.POD_INDEX_LABEL) is None
