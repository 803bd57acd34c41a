"""The reasons for rights that the stories do not use are about rights that there are."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.e2e.rights import ELSEWHERE, explained_rights
from tests.support.clusters.audit import Right, granted_rights

FILES = sorted((Path(__file__).parents[2] / "deploy").glob("*.yaml"))
OBJECTS = [each for file in FILES for each in yaml.safe_load_all(file.read_text())]


@pytest.mark.parametrize("account", ELSEWHERE)
def test_no_reason_is_given_for_a_right_that_is_not_there(account: str) -> None:
    granted = {Right(each.group, each.resource, each.verb) for each in granted_rights(OBJECTS, account)}
    assert sorted(map(str, explained_rights(account) - granted)) == []


def test_every_account_is_looked_at() -> None:
    assert {each["metadata"]["name"] for each in OBJECTS if each["kind"] == "ServiceAccount"} == set(ELSEWHERE)
