from __future__ import annotations

import pytest

from shoal.cluster.node.process.runtime.hiding import Mount, is_hidden, parsed_mounts, places_to_cover

MOUNTS = [
    Mount("8:1", "/", "/"),
    Mount("8:2", "/", "/home"),
    Mount("8:2", "/me/.shoal/pki", "/mnt/again"),
    Mount("8:2", "/", "/mnt/homes"),
    Mount("8:3", "/", "/mnt/covered"),
    Mount("8:2", "/", "/mnt/covered"),
    Mount("8:1", "/srv", "/export"),
]
HIDDEN = ["/home/me/.shoal"]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("/", "/", ["/home/me/.shoal", "/mnt/again", "/mnt/homes/me/.shoal", "/mnt/covered/me/.shoal"]),
        ("/home", "/data", ["/data/me/.shoal"]),
        ("/home/me", "/data", ["/data/.shoal"]),
        ("/home/me/.shoalish", "/data", []),
        ("/opt", "/data", []),
        ("/mnt", "/data", ["/data/again", "/data/homes/me/.shoal", "/data/covered/me/.shoal"]),
        ("/mnt/homes/me", "/data", ["/data/.shoal"]),
        ("/export", "/data", []),
    ],
)
def test_a_hidden_folder_is_covered_wherever_it_would_be_seen(source: str, target: str, expected: list[str]) -> None:
    assert places_to_cover(source, target, HIDDEN, MOUNTS) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/me/.shoal", True),
        ("/home/me/.shoal/api.sock", True),
        ("/home/me", False),
        ("/home/me/.shoalish", False),
        ("/mnt/again", True),
        ("/mnt/again/ca.key", True),
        ("/mnt/homes/me/.shoal/api.sock", True),
        ("/mnt/homes/you", False),
        ("/mnt/covered/me/.shoal", True),
        ("/srv/me/.shoal", False),
    ],
)
def test_what_lies_in_a_hidden_folder_is_hidden_by_whatever_mount_it_is_reached(path: str, expected: bool) -> None:
    assert is_hidden(path, HIDDEN, MOUNTS) == expected


def test_hidden_files_of_a_mount_point_are_found_in_its_file_system() -> None:
    assert is_hidden("/export/secrets/key", ["/srv/secrets"], MOUNTS)
    assert places_to_cover("/export", "/data", ["/srv/secrets"], MOUNTS) == ["/data/secrets"]


def test_mounts_are_read_as_the_kernel_writes_them() -> None:
    text = (
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
        r"36 22 0:31 /a\040b /mnt/with\040blank\134 rw - tmpfs tmpfs rw" + "\n"
    )
    assert parsed_mounts(text) == [Mount("8:1", "/", "/"), Mount("0:31", "/a b", "/mnt/with blank\\")]
