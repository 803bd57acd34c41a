"""Pools of simulated nodes, their addresses and their models."""

from __future__ import annotations

import pytest

from shoal.api.meta import label_value_problems
from shoal.cluster.node.addresses import Addresses, NoAddress
from shoal.cluster.node.simulated import InvalidPool, Pool
from shoal.cluster.node.simulated.models import MODELS
from shoal.cluster.node.simulated.pools import node_labels, node_names, node_resources


@pytest.mark.parametrize(
    ("text", "pool"),
    [
        ("16x8:H100", Pool(16, 8, "H100")),
        ("1x0", Pool(1, 0)),
        ("4X1:my-gpu.2", Pool(4, 1, "my-gpu.2")),
        (" 2x4 ", Pool(2, 4)),
    ],
)
def test_a_pool_is_read(text: str, pool: Pool) -> None:
    assert Pool.parse(text) == pool


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "write NODESxGPUS"),
        ("16", "write NODESxGPUS"),
        ("ax8", "write NODESxGPUS"),
        ("-1x8", "write NODESxGPUS"),
        ("16x8:", "write NODESxGPUS"),
        ("200000x8", "200000 nodes are too many"),
        ("1x5000", "5000 GPUs in a node are too many"),
        ("1x1:a b", "'a b' cannot be a label"),
    ],
)
def test_what_is_wrong_with_a_pool_is_named(text: str, words: str) -> None:
    with pytest.raises(InvalidPool, match=words):
        Pool.parse(text)


def test_all_models_fit_into_labels_and_any_case_finds_them() -> None:
    assert [name for name, model in MODELS.items() if label_value_problems(model.product)] == []
    labels = node_labels("sim-0-0", 0, Pool.parse("1x2:rtx-4090"))
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-GeForce-RTX-4090"


def test_a_model_nobody_knows_has_its_name_and_a_usual_memory() -> None:
    labels = node_labels("sim-0-0", 0, Pool.parse("1x2:X9000"))
    assert (labels["nvidia.com/gpu.product"], labels["nvidia.com/gpu.memory"]) == ("X9000", "81920")


def test_nodes_without_gpus_have_no_gpu_labels() -> None:
    pool = Pool.parse("2x0")
    assert list(node_names(3, pool)) == ["sim-3-0", "sim-3-1"]
    assert not [name for name in node_labels("sim-3-0", 3, pool) if name.startswith("nvidia")]
    assert set(node_resources(pool)) == {"cpu", "memory", "pods"}


def test_gpus_of_another_maker_are_another_resource() -> None:
    assert node_resources(Pool.parse("1x8:MI300X"))["amd.com/gpu"] == "8"


def test_an_address_is_the_owners_until_it_is_released_and_given_again_late() -> None:
    addresses = Addresses("10.0.0.0/29")
    assert [addresses.take("a"), addresses.take("a"), addresses.take("b")] == ["10.0.0.1", "10.0.0.1", "10.0.0.2"]
    addresses.shown("a", "10.0.0.1")
    addresses.release("a", "10.0.0.1")
    assert [addresses.take(owner) for owner in "cdef"] == ["10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"]
    assert addresses.take("g") == "10.0.0.1"
    with pytest.raises(NoAddress, match=r"all 6 addresses of 10\.0\.0\.0/29 are in use"):
        addresses.take("h")


def test_after_a_restart_addresses_in_use_are_not_given_and_foreign_ones_do_no_harm() -> None:
    addresses = Addresses("10.0.0.0/29")
    addresses.shown("a", "10.0.0.2")
    addresses.shown("b", "192.168.0.1")
    addresses.release("b", "192.168.0.1")
    assert addresses.take("c") == "10.0.0.3"
    assert len(addresses) == 2
