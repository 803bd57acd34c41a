"""What is compared between two clusters is what they mean, and nothing that chance decides."""

from __future__ import annotations

import pytest

from tests.clients.live.reading import settled


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("pod/web-79cd5d7488-x2kcd  Running", "pod/web-59fcf9f56-bvw8z  Running"),
        ("Successfully assigned a/one to sim-0-0", "Successfully assigned a/one to sim-0-1"),
        ("Waiting for deployment to finish\ndone\n", "done\n"),
        (
            "  Normal  Killing  <age>  kubelet  b\n  Normal  Pulled  <age>  kubelet  a\n",
            "  Normal  Pulled  <age>  shoal  a\n  Normal  Killing  <age>  shoal  b\n",
        ),
        (
            "error: [cannot delete a, cannot delete b]\ncannot delete a\ncannot delete b\n",
            "error: [cannot delete b, cannot delete a]\ncannot delete b\ncannot delete a\n",
        ),
        ("  Available  True  A\n  Progressing  True  B\n", "  Progressing  True  B\n  Available  True  A\n"),
        ("stderr: Warning: ignoring a; deleting b\n", "stderr: Warning: deleting b; ignoring a\n"),
        ("<age>  Warning  FailedScheduling  pod/a  skip schedule deleting pod: x/a\ndone\n", "done\n"),
    ],
    ids=[
        "name",
        "node",
        "progress",
        "order and source of events",
        "order of reasons",
        "order of conditions",
        "order of warnings",
        "a lost race",
    ],
)
def test_what_chance_decides_is_named(left: str, right: str) -> None:
    assert settled(left) == settled(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("web  2/2  2  2", "web  1/2  2  2"),
        ("pod/site-db-0  Running", "pod/site-db-1  Running"),
        ("  Normal  Killing  <age>  shoal  a\n", "  Warning  Killing  <age>  shoal  a\n"),
    ],
    ids=["count", "ordinal", "kind of event"],
)
def test_what_a_cluster_says_is_kept(left: str, right: str) -> None:
    assert settled(left) != settled(right)
