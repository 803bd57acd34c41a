"""How long a pod runs at most: by its deadline, or by what its author says."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.core.pods import Pod
from shoal.scheduler.model.resources import ResourceNames
from shoal.scheduler.watching.kinds import Kinds, task_of

SAID = "shoal.dev/expected-runtime"


@pytest.mark.parametrize(
    ("annotations", "spec", "length"),
    [
        pytest.param({}, {}, None, id="nobody knows"),
        pytest.param({}, {"activeDeadlineSeconds": 90}, 90.0, id="it has a deadline"),
        pytest.param({SAID: "1h30m"}, {}, 5400.0, id="its author says so"),
        pytest.param({SAID: "1h"}, {"activeDeadlineSeconds": 90}, 90.0, id="the deadline comes first"),
        pytest.param({SAID: "30s"}, {"activeDeadlineSeconds": 90}, 30.0, id="its author's word comes first"),
        pytest.param({SAID: "soon"}, {}, None, id="its author says nothing of use"),
        pytest.param({SAID: "soon"}, {"activeDeadlineSeconds": 90}, 90.0, id="nothing of use, and a deadline"),
        pytest.param({SAID: "-5m"}, {}, None, id="a negative time is no time"),
        pytest.param({SAID: "0"}, {"activeDeadlineSeconds": 90}, 90.0, id="nor is none"),
    ],
)
def test_a_pod_runs_no_longer_than_somebody_says(
    annotations: dict[str, str], spec: dict[str, Any], length: float | None
) -> None:
    pod = msgspec.convert({"metadata": {"name": "p", "annotations": annotations}, "spec": spec}, Pod)
    assert task_of(pod, Kinds(ResourceNames())).longest_run == length
