from __future__ import annotations

import pytest

from shoal.api.grove import start_order


@pytest.mark.parametrize(
    ("arguments", "cliques"),
    [
        pytest.param(["--podcliques=web-0-db:2"], {"web-0-db": 2}, id="one"),
        pytest.param(["--podcliques=a:1", "--podcliques=b:2"], {"a": 1, "b": 2}, id="one in each argument"),
        pytest.param(["--podcliques=a:1,b:2"], {"a": 1, "b": 2}, id="several in one"),
        pytest.param(["--podcliques", "a:1"], {"a": 1}, id="in the next argument"),
        pytest.param(["-podcliques=a:1"], {"a": 1}, id="one dash"),
        pytest.param(["--podcliques=a:1", "--podcliques=a:3"], {"a": 3}, id="the last counts"),
    ],
)
def test_arguments_name_the_cliques_and_how_many_pods(arguments: list[str], cliques: dict[str, int]) -> None:
    assert start_order.awaited(arguments) == cliques


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param([], "there is nothing to wait for", id="nothing"),
        pytest.param(["--podcliques"], "'' is not valid", id="no value"),
        pytest.param(["--podcliques="], "'' is not valid", id="an empty value"),
        pytest.param(["--podcliques=a"], "'a' is not valid", id="no number"),
        pytest.param(["--podcliques=:1"], "':1' is not valid", id="no clique"),
        pytest.param(["--podcliques=a:0"], "'a:0' is not valid", id="zero"),
        pytest.param(["--podcliques=a:-1"], "'a:-1' is not valid", id="less than zero"),
        pytest.param(["--podcliques=a:9999999999"], "is not valid", id="too many"),
        pytest.param(["--podcliques=a:1,"], "'' is not valid", id="a comma at the end"),
        pytest.param(["--cliques=a:1"], "'--cliques=a:1' is not understood", id="another flag"),
        pytest.param(["a:1"], "'a:1' is not understood", id="no flag"),
    ],
)
def test_arguments_that_make_no_sense_are_told(arguments: list[str], sentence: str) -> None:
    with pytest.raises(start_order.InvalidArguments, match=sentence):
        start_order.awaited(arguments)


def test_what_is_written_is_read_back() -> None:
    assert start_order.awaited([start_order.argument("web-0-db", 2)]) == {"web-0-db": 2}


def test_those_are_missing_that_have_too_few_ready_pods() -> None:
    missing = start_order.missing({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 1, "d": 9})
    assert [str(one) for one in missing] == ["b: 1 of 2 ready", "c: 0 of 3 ready"]
    assert not start_order.missing({"a": 1}, {"a": 2})
