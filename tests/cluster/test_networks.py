"""Which addresses belong to the cluster, and which lead nowhere that a request may go."""

from __future__ import annotations

import pytest

from shoal.cluster.networks import is_of_cluster, is_special


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("10.88.0.1", True),
        ("10.88.255.254", True),
        ("10.89.0.1", False),
        ("10.96.0.1", True),
        ("10.111.255.255", True),
        ("10.112.0.1", False),
        ("10.244.0.1", True),
        ("10.247.255.255", True),
        ("10.248.0.1", False),
        ("::ffff:10.88.0.7", True),
        ("64:ff9b::10.96.0.1", True),
        ("2002:0a58:0007::1", True),
        ("::10.88.0.7", True),
        ("192.0.2.1", False),
        ("2001:db8::1", False),
    ],
)
def test_pods_and_services_have_their_networks_however_an_address_is_written(address: str, expected: bool) -> None:
    assert is_of_cluster(address) is expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("::", True),
        ("0.0.0.0", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:0.0.0.0", True),
        ("::ffff:169.254.169.254", True),
        ("64:ff9b::127.0.0.1", True),
        ("169.254.169.254", True),
        ("fe80::1%eth0", True),
        ("224.0.0.1", True),
        ("ff02::1", True),
        ("255.255.255.255", True),
        ("192.0.2.1", False),
        ("::ffff:192.0.2.1", False),
        ("2001:db8::1", False),
    ],
)
def test_an_address_of_this_machine_or_its_link_is_special_however_it_is_written(address: str, expected: bool) -> None:
    assert is_special(address) is expected
