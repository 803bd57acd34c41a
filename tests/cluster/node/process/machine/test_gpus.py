"""Who has which GPU."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.cluster.node.process.machine.gpus import Gpus, NotEnoughGpus, gpu_environment
from tests.cluster.node.process.machine.presences import some_gpus


@pytest.fixture
def gpus(tmp_path: Path) -> Gpus:
    return Gpus(some_gpus(4), tmp_path / "gpus.json")


def test_containers_are_given_the_first_free_ones_and_no_device_twice(gpus: Gpus) -> None:
    assert gpus.allot("a", "main", 2) == ["GPU-0", "GPU-1"]
    assert gpus.allot("a", "beside", 1) == ["GPU-2"]
    with pytest.raises(NotEnoughGpus, match="2 GPUs were asked for and 1 are free"):
        gpus.allot("b", "main", 2)
    assert gpus.allot("b", "main", 1) == ["GPU-3"]
    gpus.release("a")
    assert gpus.allot("c", "main", 3) == ["GPU-0", "GPU-1", "GPU-2"]


def test_a_container_that_is_started_again_keeps_its_own(gpus: Gpus) -> None:
    gpus.allot("a", "main", 1)
    assert gpus.allot("b", "main", 2) == gpus.allot("b", "main", 2) == ["GPU-1", "GPU-2"]


def test_what_init_containers_had_goes_to_those_after_them(gpus: Gpus) -> None:
    gpus.allot("other", "main", 1)
    assert gpus.allot("a", "prepare", 3) == ["GPU-1", "GPU-2", "GPU-3"]
    assert gpus.allot("a", "main", 2, reusing=["prepare"]) == ["GPU-1", "GPU-2"]
    assert gpus.allot("a", "beside", 1, reusing=["prepare"]) == ["GPU-3"]


def test_after_a_restart_of_the_agent_containers_have_what_they_had(gpus: Gpus, tmp_path: Path) -> None:
    gpus.allot("gone", "main", 1)
    gpus.allot("stays", "main", 2)
    again = Gpus(some_gpus(4), tmp_path / "gpus.json")
    assert again.held("stays", "main") == ["GPU-1", "GPU-2"]
    again.keep({"stays"})
    assert again.allot("new", "main", 2) == ["GPU-0", "GPU-3"]
    again.restore("found", "main", ["GPU-0"])
    assert Gpus(some_gpus(4), tmp_path / "gpus.json").held("found", "main") == ["GPU-0"]


def test_what_cannot_be_written_down_is_not_given_and_can_be_given_back(gpus: Gpus, tmp_path: Path) -> None:
    """As where the disk is full: a device that only we know of would be given again by the next agent."""
    gpus.allot("a", "main", 1)
    (tmp_path / "gpus.new").mkdir()
    for _ in range(2):
        with pytest.raises(OSError, match=r"gpus\.new"):
            gpus.allot("b", "main", 1)
    gpus.keep({"b"})
    assert gpus.held("a", "main") == []
    (tmp_path / "gpus.new").rmdir()
    assert gpus.allot("b", "main", 1) == ["GPU-0"]
    assert Gpus(some_gpus(4), tmp_path / "gpus.json").held("b", "main") == ["GPU-0"]


def test_a_device_that_is_lost_is_given_to_nobody_and_replaced_when_its_container_starts_again(gpus: Gpus) -> None:
    gpus.allot("a", "main", 1)
    gpus.found = some_gpus(4)[1:]
    assert gpus.allot("b", "main", 1) == ["GPU-1"]
    assert gpus.allot("a", "main", 1) == ["GPU-2"]


def test_an_account_that_was_cut_short_begins_anew(tmp_path: Path) -> None:
    (tmp_path / "gpus.json").write_text('[{"uid')
    assert Gpus(some_gpus(1), tmp_path / "gpus.json").allot("a", "main", 1) == ["GPU-0"]


def test_a_container_gets_the_device_files_of_its_gpus_and_no_others(gpus: Gpus, tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    files = gpus.files(["GPU-1"], folder=tmp_path)
    assert files == [str(tmp_path / name) for name in ("nvidia1", "nvidiactl", "nvidia-uvm")]
    assert gpus.files([], folder=tmp_path) == []


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        (["GPU-a", "GPU-b"], {"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b", "NVIDIA_VISIBLE_DEVICES": "GPU-a,GPU-b"}),
        ([], {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}),
    ],
)
def test_cuda_is_told_by_uuid(devices: list[str], expected: dict[str, str]) -> None:
    assert gpu_environment(devices) == expected


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xy"), st.integers(0, 5), st.booleans())))
def test_whatever_is_asked_and_given_back_no_device_is_had_by_two(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, int, bool]]
) -> None:
    gpus = Gpus(some_gpus(5), tmp_path_factory.mktemp("gpus") / "gpus.json")
    for uid, container, count, leaves in steps:
        if leaves:
            gpus.release(uid)
            continue
        with suppress(NotEnoughGpus):
            assert len(gpus.allot(uid, container, count)) == count
        held = [device for uid in "abcd" for container in "xy" for device in gpus.held(uid, container)]
        assert len(held) == len(set(held))
