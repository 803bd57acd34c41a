from __future__ import annotations

from tests.cluster.apiserver.conftest import Ask


async def test_requests_are_counted_by_what_they_were_on(ask: Ask) -> None:
    await ask("GET", "/api/v1/namespaces/default/configmaps")
    _, text = await ask("GET", "/metrics")
    line = (
        'apiserver_request_total{code="200",group="",resource="configmaps",subresource="",verb="LIST",version="v1"} 1.0'
    )
    assert line in text.decode()
    assert 'apiserver_storage_objects{resource="namespaces"} 4.0' in text.decode()


async def test_names_that_clients_make_up_are_no_labels(ask: Ask) -> None:
    for number in range(5):
        await ask("GET", f"/apis/made.up/v{number}/things{number}")
        await ask(f"VERB{number}", f"/api/v1/namespaces/default/pods/a/part{number}")
    text = (await ask("GET", "/metrics"))[1].decode()
    assert "things" not in text
    assert "part1" not in text
    assert "VERB1" not in text
