from __future__ import annotations

import pytest

from shoal.cluster.apiserver.front.negotiation import Form, Representation, check_producible, negotiated
from shoal.cluster.apiserver.refusals import Refused

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

CASES = {
    "nothing": ("", Representation()),
    "anything": ("*/*", Representation()),
    "json": ("application/json", Representation()),
    "yaml": ("application/yaml", Representation(is_yaml=True)),
    "protobuf is passed over where json will do": (
        "application/vnd.kubernetes.protobuf,application/json",
        Representation(),
    ),
    "kubectl get": (f"{TABLE},application/json", Representation(Form.TABLE)),
    "old tables": ("application/json;as=Table;v=v1beta1;g=meta.k8s.io", Representation(Form.TABLE, "v1beta1")),
    "a table of an unknown version falls back": (
        "application/json;as=Table;v=v9;g=meta.k8s.io,application/json",
        Representation(),
    ),
    "metadata": (
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        Representation(Form.METADATA),
    ),
    "by weight": ("application/yaml;q=0.5,application/json;q=0.9", Representation()),
    "a watch's framing": ("application/json;stream=watch", Representation()),
}


@pytest.mark.parametrize(("accept", "expected"), CASES.values(), ids=CASES)
def test_the_first_wish_that_can_be_met_counts(accept: str, expected: Representation) -> None:
    assert negotiated(accept) == expected


@pytest.mark.parametrize("accept", ["text/html", "application/vnd.kubernetes.protobuf", "application/cbor"])
def test_what_cannot_be_written_is_refused(accept: str) -> None:
    with pytest.raises(Refused) as refused:
        negotiated(accept)
    assert refused.value.status.code == 406


@pytest.mark.parametrize("accept", ["", "*/*", "text/html, */*;q=0.1", "application/json;as=Odd", "application/yaml"])
def test_what_comes_in_some_wished_media_type_may_be_asked_for(accept: str) -> None:
    check_producible(accept)


@pytest.mark.parametrize("accept", ["text/html", "application/*", "nonsense"])
def test_whoever_takes_nothing_that_is_there_is_told_what_is(accept: str) -> None:
    with pytest.raises(Refused) as refused:
        check_producible(accept, ("application/json",))
    assert refused.value.status.message == "406: Not Acceptable\n\nAvailable representations: application/json"
    assert refused.value.has_details
