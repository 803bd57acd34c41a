"""How much memory a node's GPUs have."""

from __future__ import annotations

import pytest

from shoal.scheduler.gpu_memory import gpu_memory_of


@pytest.mark.parametrize(
    ("label", "mebibytes"),
    [
        ("81559", 81500),
        ("16384", 16300),
        ("100", 100),
        ("99", None),
        (str(40 * 2**30), 40900),
        ("", None),
        ("lots", None),
        ("-5", None),
        ("0", None),
    ],
)
def test_a_label_says_mebibytes_or_bytes_and_whole_hundreds_count(label: str, mebibytes: int | None) -> None:
    assert gpu_memory_of({"nvidia.com/gpu.memory": label}) == mebibytes


def test_a_node_without_the_label_says_nothing() -> None:
    assert gpu_memory_of({}) is None
