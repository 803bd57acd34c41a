"""Selectors of devices: those that are understood, and those of which it is said that they are not."""

from __future__ import annotations

import pytest

from shoal.scheduler.devices import NotUnderstood, selects

ATTRIBUTES = {
    "type": {"string": "gpu"},
    "healthy": {"bool": True},
    "shared": {"bool": False},
    "index": {"int": 3},
    "other.io/model": {"string": "H100"},
}


@pytest.mark.parametrize(
    ("expression", "does_it"),
    [
        ("device.driver == 'gpu.x.io'", True),
        ('device.driver == "nic.x.io"', False),
        ("device.driver != 'nic.x.io'", True),
        ("device.driver == 'gpu.x.io' && device.attributes['gpu.x.io'].type == 'gpu'", True),
        ("device.driver == 'gpu.x.io' && device.attributes['gpu.x.io'].type == 'mig'", False),
        ("device.attributes['gpu.x.io']['type'] == 'gpu'", True),
        ("device.attributes['other.io'].model == 'H100'", True),
        ("device.attributes['other.io'].type == 'gpu'", False),
        ("device.attributes['gpu.x.io'].index == 3", True),
        ("device.attributes['gpu.x.io'].index == '3'", False),
        ("device.attributes['gpu.x.io'].healthy", True),
        ("device.attributes['gpu.x.io'].healthy == true", True),
        ("!device.attributes['gpu.x.io'].shared", True),
        ("!device.attributes['gpu.x.io'].healthy", False),
        ("device.attributes['gpu.x.io'].unheard == 'of'", False),
        ("(device.driver == 'gpu.x.io')", True),
    ],
)
def test_a_device_is_selected_by_its_driver_and_its_attributes(expression: str, does_it: bool) -> None:
    assert selects(expression, "gpu.x.io", ATTRIBUTES) is does_it


@pytest.mark.parametrize(
    "expression",
    [
        "device.capacity['gpu.x.io'].memory.compareTo(quantity('40Gi')) >= 0",
        "device.driver == 'a' || device.driver == 'b'",
        "device.driver.startsWith('gpu')",
        "'gpu.x.io' in device.attributes",
        "device.attributes['gpu.x.io'].index > 2",
        "",
        "true",
    ],
)
def test_what_is_not_understood_is_said_to_be_so_and_never_guessed(expression: str) -> None:
    with pytest.raises(NotUnderstood, match="selector"):
        selects(expression, "gpu.x.io", ATTRIBUTES)
