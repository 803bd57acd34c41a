"""What a pod asks of GPUs, as its containers and annotations say it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.core.pods import Container, ResourceRequirements
from shoal.scheduler.gpu_requests import GpuRequest, InvalidGpuRequest, gpu_request, mig_slices, rounded_portion

GPU, AMD, MIG = "nvidia.com/gpu", "amd.com/gpu", "nvidia.com/mig-1g.5gb"
FRACTION, MEMORY, DEVICES = "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"


def a_container(
    limits: dict[str, Any] | None = None, requests: dict[str, Any] | None = None, *, sidecar: bool = False
) -> Any:
    return Container(
        resources=ResourceRequirements(limits=limits or {}, requests=requests or {}),
        restart_policy="Always" if sidecar else "",
    )


PLAIN = [a_container({"cpu": "1"})]
ONE = [a_container({GPU: "1"})]


@pytest.mark.parametrize(
    ("annotations", "containers", "init_containers", "expected"),
    [
        pytest.param({}, [], [], GpuRequest(), id="nothing"),
        pytest.param({}, PLAIN, [], GpuRequest(), id="a processor is no GPU"),
        pytest.param({}, [a_container({GPU: 0})], [], GpuRequest(), id="none at all"),
        pytest.param({}, [a_container({GPU: "2"})], [], GpuRequest(whole=2), id="whole devices"),
        pytest.param({}, [a_container({GPU: "2000m"})], [], GpuRequest(whole=2), id="whole devices in thousandths"),
        pytest.param({}, [a_container({AMD: 1})], [], GpuRequest(whole=1), id="the other make"),
        pytest.param({}, [a_container(requests={GPU: "3"})], [], GpuRequest(whole=3), id="a request without a limit"),
        pytest.param({}, [*ONE, a_container({GPU: "2"})], [], GpuRequest(whole=3), id="containers add up"),
        pytest.param({}, ONE, [a_container({GPU: "4"})], GpuRequest(whole=4), id="an init container needs more"),
        pytest.param({}, ONE, [a_container({GPU: "1"})] * 3, GpuRequest(whole=1), id="init containers run in turn"),
        pytest.param({}, ONE, [a_container({GPU: "2"}, sidecar=True)], GpuRequest(whole=3), id="a sidecar stays"),
        pytest.param(
            {},
            ONE,
            [a_container({GPU: "2"}, sidecar=True), a_container({GPU: "4"})],
            GpuRequest(whole=6),
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            {},
            ONE,
            [a_container({GPU: "4"}), a_container({GPU: "2"}, sidecar=True)],
            GpuRequest(whole=4),
            id="and not beside those after it",
        ),
        pytest.param({}, [a_container({MIG: 2})], [], GpuRequest(mig=(("1g.5gb", 2),)), id="MIG instances"),
        pytest.param(
            {},
            [a_container({"nvidia.com/mig-3g.20gb": 1, MIG: 2}), a_container({MIG: 1})],
            [],
            GpuRequest(mig=(("1g.5gb", 3), ("3g.20gb", 1))),
            id="MIG instances of two profiles",
        ),
        pytest.param({FRACTION: "0.5"}, PLAIN, [], GpuRequest(portion=0.5, devices=1), id="half a device"),
        pytest.param({FRACTION: ".25"}, PLAIN, [], GpuRequest(portion=0.25, devices=1), id="without the zero"),
        pytest.param({FRACTION: "5e-1"}, PLAIN, [], GpuRequest(portion=0.5, devices=1), id="with an exponent"),
        pytest.param({FRACTION: "0.333"}, PLAIN, [], GpuRequest(portion=0.33, devices=1), id="rounded down"),
        pytest.param({FRACTION: "0.125"}, PLAIN, [], GpuRequest(portion=0.13, devices=1), id="halves go up"),
        pytest.param(
            {FRACTION: "0.001"}, PLAIN, [], GpuRequest(portion=0.01, devices=1), id="never rounded to nothing"
        ),
        pytest.param(
            {FRACTION: "0.5", DEVICES: "2"}, PLAIN, [], GpuRequest(portion=0.5, devices=2), id="parts of two devices"
        ),
        pytest.param({MEMORY: "4096"}, PLAIN, [], GpuRequest(memory=4096, devices=1), id="memory"),
        pytest.param({MEMORY: "10", DEVICES: "4"}, PLAIN, [], GpuRequest(memory=10, devices=4), id="memory of four"),
        pytest.param({FRACTION: "0.5", "mps": "true"}, PLAIN, [], GpuRequest(portion=0.5, devices=1), id="MPS shares"),
        pytest.param({"mps": "false"}, ONE, [], GpuRequest(whole=1), id="MPS turned off"),
        pytest.param(
            {FRACTION: "0.5"}, [a_container({GPU: 0})], [], GpuRequest(portion=0.5, devices=1), id="beside zero"
        ),
    ],
)
def test_what_a_pod_asks_for(
    annotations: dict[str, str], containers: list[Any], init_containers: list[Any], expected: GpuRequest
) -> None:
    assert gpu_request(annotations, containers, init_containers) == expected


@pytest.mark.parametrize(
    ("annotations", "containers", "field"),
    [
        pytest.param({FRACTION: "0"}, PLAIN, FRACTION, id="no part"),
        pytest.param({FRACTION: "1"}, PLAIN, FRACTION, id="a whole device is no part"),
        pytest.param({FRACTION: "1.5"}, PLAIN, FRACTION, id="more than a device"),
        pytest.param({FRACTION: "-0.5"}, PLAIN, FRACTION, id="less than nothing"),
        pytest.param({FRACTION: "half"}, PLAIN, FRACTION, id="words"),
        pytest.param({FRACTION: ""}, PLAIN, FRACTION, id="no words"),
        pytest.param({FRACTION: "nan"}, PLAIN, FRACTION, id="not a number"),
        pytest.param({FRACTION: "0_5"}, PLAIN, FRACTION, id="Python's own spelling"),
        pytest.param({MEMORY: "0"}, PLAIN, MEMORY, id="no memory"),
        pytest.param({MEMORY: "-1"}, PLAIN, MEMORY, id="less than no memory"),
        pytest.param({MEMORY: "1Gi"}, PLAIN, MEMORY, id="a unit of its own"),
        pytest.param({MEMORY: "1.5"}, PLAIN, MEMORY, id="parts of a MiB"),
        pytest.param({MEMORY: "9" * 5000}, PLAIN, MEMORY, id="more than any number is read for"),
        pytest.param({FRACTION: "0.5", MEMORY: "10"}, PLAIN, MEMORY, id="measured twice"),
        pytest.param({FRACTION: "0.5"}, ONE, FRACTION, id="a part beside a whole device"),
        pytest.param({MEMORY: "10"}, ONE, MEMORY, id="memory beside a whole device"),
        pytest.param({FRACTION: "0.5"}, [a_container({MIG: 1})], FRACTION, id="a part beside a MIG instance"),
        pytest.param({FRACTION: "0.5", DEVICES: "0"}, PLAIN, DEVICES, id="parts of no device"),
        pytest.param({FRACTION: "0.5", DEVICES: "two"}, PLAIN, DEVICES, id="devices in words"),
        pytest.param({DEVICES: "2"}, ONE, DEVICES, id="devices without a part"),
        pytest.param({"mps": "true"}, ONE, "mps", id="MPS on a whole device"),
        pytest.param({"mps": "true"}, PLAIN, "mps", id="MPS on no device"),
        pytest.param({}, [a_container({GPU: "500m"})], GPU, id="half a device as a resource"),
        pytest.param({}, [a_container({GPU: "many"})], GPU, id="a resource in words"),
        pytest.param({}, [a_container({GPU: -1})], GPU, id="less than no device"),
    ],
)
def test_nonsense_is_refused_with_the_field_that_holds_it(
    annotations: dict[str, str], containers: list[Any], field: str
) -> None:
    with pytest.raises(InvalidGpuRequest) as refused:
        gpu_request(annotations, containers)
    assert f"[{field}]" in refused.value.field
    assert refused.value.problem in str(refused.value)


@pytest.mark.parametrize(
    ("request_", "quota"),
    [
        pytest.param(GpuRequest(), 0.0, id="nothing"),
        pytest.param(GpuRequest(whole=3), 3.0, id="whole"),
        pytest.param(GpuRequest(portion=0.33, devices=3), 0.99, id="parts, exactly"),
        pytest.param(GpuRequest(memory=4096, devices=2), 0.0, id="memory weighs nothing by itself"),
        pytest.param(GpuRequest(mig=(("1g.5gb", 2), ("3g.20gb", 1))), 5.0, id="MIG by slices"),
    ],
)
def test_what_a_request_weighs_against_a_quota(request_: GpuRequest, quota: float) -> None:
    assert request_.gpus == quota


@pytest.mark.parametrize(
    ("profile", "slices"),
    [("1g.5gb", 1), ("7g.80gb", 7), ("1c.3g.20gb", 3), ("1g.10gb.me", 1), ("2g.12gb+gfx", 2), ("odd", 0)],
)
def test_a_mig_profile_costs_its_slices(profile: str, slices: int) -> None:
    assert mig_slices(profile) == slices


@given(st.floats(min_value=0, max_value=1, exclude_min=True, exclude_max=True))
def test_a_portion_is_a_whole_number_of_hundredths_and_never_nothing(portion: float) -> None:
    rounded = rounded_portion(portion)
    assert 0 < rounded <= 1
    assert round(rounded * 100) / 100 == rounded
    assert abs(rounded - portion) <= 0.01


@given(st.dictionaries(st.sampled_from([FRACTION, MEMORY, DEVICES, "mps"]), st.text(max_size=12)))
def test_whatever_is_written_is_read_or_refused(annotations: dict[str, str]) -> None:
    try:
        asked = gpu_request(annotations, PLAIN)
    except InvalidGpuRequest:
        return
    assert asked.is_nothing or asked.is_shared
