"""What a container's processes say to the runtime arrives, however they end."""

from __future__ import annotations

from shoal.cluster.node.process.runtime.control import GO, Failed, heard, socket_pair, tell


def test_the_last_word_is_heard_of_one_that_ends_without_listening() -> None:
    ours, theirs = socket_pair()
    with ours:
        with theirs:
            ours.send(GO)
            tell(theirs, Failed("StartError", "no such volume"))
        assert heard(ours) == (Failed("StartError", "no such volume"), [])
        assert heard(ours) is None
