"""Answers in YAML."""

from __future__ import annotations

import asyncio

import msgspec
import yaml

from shoal.cluster.apiserver.calls import Answer, Call
from shoal.cluster.apiserver.core import Core
from tests.cluster.apiserver.conftest import Ask

MAPS = "/api/v1/namespaces/default/configmaps"


async def listed(core: Core, accept: str) -> bytes:
    answer = await core.service.answer(Call(method="GET", path=MAPS, headers={"accept": accept}, is_trusted=True))
    assert isinstance(answer, Answer)
    assert answer.content_type == accept
    return answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)


async def test_a_long_list_in_yaml_says_the_same_and_lets_others_be_answered(ask: Ask, core: Core) -> None:
    data = {f"key-{number}": 'a "text": é\n  and more' for number in range(50)}
    for number in range(50):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"a-{number}"}, "data": data}
        assert (await ask("POST", MAPS, body))[0] == 201
    in_yaml = asyncio.create_task(listed(core, "application/yaml"))
    await asyncio.sleep(0)
    assert (await ask("GET", "/readyz"))[0] == 200
    assert not in_yaml.done()
    assert yaml.safe_load(await in_yaml) == msgspec.json.decode(await listed(core, "application/json"))
