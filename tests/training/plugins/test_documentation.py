"""The plugin that the documentation shows is one, and does what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

from shoal.api.trainer import TrainJob
from shoal.training.framework import Framework, Plugin
from shoal.training.plugins import built_in
from tests.training.builders import a_runtime, a_train_job, env_of, info_of

DOCS = Path(__file__).parents[3] / "docs"


def test_the_plugin_of_ten_lines_works() -> None:
    text = (DOCS / "training-plugins.md").read_text()
    [code] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(code, scope)
    plugin: Plugin = scope["Mirror"]()
    framework = Framework([plugin, *built_in()])
    [pods] = framework.info(a_train_job(), a_runtime()).pod_sets
    assert env_of({"env": pods.containers[0].env}) == [("HF_ENDPOINT", "https://models.acme.io")]


def test_the_order_that_is_told_is_the_order() -> None:
    text = " ".join((DOCS / "training-plugins.md").read_text().split())
    told = text.partition("They come in a fixed order: ")[2]
    places = [told.index(plugin.name) for plugin in Framework(built_in()).plugins]
    assert places == sorted(places)


def test_the_first_train_job_is_one() -> None:
    [manifest] = re.findall(r"```yaml\n(.*?)```", (DOCS / "training.md").read_text(), re.DOTALL)
    job = msgspec.convert(yaml.safe_load(manifest), TrainJob)
    [pods] = info_of(job, a_runtime(ml={"torch": {}})).pod_sets
    assert pods.count == 2
    assert pods.scheduler == "kai-scheduler"
