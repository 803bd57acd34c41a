"""What the name of an image stands for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shoal.cluster.node.process.contents import ConfigProblem
from shoal.cluster.node.process.contents.images import PAUSE, Images, names_of


def images(folder: Path, text: str) -> Images:
    (folder / "images.yaml").write_text(text)
    return Images(folder / "images.yaml")


@pytest.mark.parametrize(
    ("image", "among"),
    [
        ("python", ["python", "library/python", "docker.io/library/python", "docker.io/python"]),
        ("docker.io/library/python:3.12", ["python:3.12", "python", "docker.io/library/python:3.12"]),
        ("pytorch/pytorch:2.9", ["pytorch/pytorch:2.9", "pytorch/pytorch", "docker.io/pytorch/pytorch"]),
        ("nvcr.io/nvidia/pytorch:25.01", ["nvcr.io/nvidia/pytorch:25.01", "nvcr.io/nvidia/pytorch"]),
        ("localhost:5000/a/b@sha256:" + "0" * 64, ["localhost:5000/a/b"]),
        ("ghcr.io/org/app:v1@sha256:" + "0" * 64, ["ghcr.io/org/app:v1", "ghcr.io/org/app"]),
    ],
)
def test_an_image_goes_by_all_its_names(image: str, among: list[str]) -> None:
    assert set(among) <= set(names_of(image))


def test_an_image_of_another_registry_does_not_go_by_a_short_name() -> None:
    assert "python" not in names_of("registry.example.com/python")


@pytest.mark.parametrize("image", ["", "UPPER", "Team/app", "a b", "name:", "name@sha256:zz", "/x", "http://x/y"])
def test_what_is_no_name_is_refused(image: str) -> None:
    with pytest.raises(ConfigProblem) as caught:
        names_of(image)
    assert caught.value.reason == "InvalidImageName"
    assert "invalid reference format" in caught.value.message


@pytest.mark.parametrize(
    ("image", "entrypoint", "command"),
    [
        ("busybox:1.36", [], ["sh"]),
        ("alpine", [], ["sh"]),
        ("debian:12", [], ["sh"]),
        ("docker.io/library/ubuntu", [], ["sh"]),
        ("bash:5", [], ["bash"]),
        ("python:3.12-slim", [], ["python3"]),
        ("registry.k8s.io/pause:3.10", PAUSE, []),
        ("grove-initc", ["grove-initc"], []),
        ("ghcr.io/ai-dynamo/grove/grove-initc:v0.1.0", ["grove-initc"], []),
        ("example.com/app", [], []),
    ],
)
def test_without_a_file_images_are_the_machine_and_well_known_ones_have_a_program(
    tmp_path: Path, image: str, entrypoint: list[str], command: list[str]
) -> None:
    found = Images(tmp_path / "images.yaml").image(image)
    assert (found.root, list(found.entrypoint), list(found.command)) == ("", entrypoint, command)


def test_the_first_entry_that_matches_counts(tmp_path: Path) -> None:
    (tmp_path / "rootfs").mkdir()
    (tmp_path / "torch").mkdir()
    mapping = images(
        tmp_path,
        """
        images:
          - match: python:3.11
            root: forbidden
          - match: [python, "nvcr.io/*"]
            root: rootfs
            user: "1000:100"
            workingDir: /srv
            env: {A: b}
          - match: "pytorch/*"
            directory: torch
            entrypoint: [python3]
            command: [-V]
        """,
    )
    python = mapping.image("docker.io/library/python:3.12")
    assert (python.root, python.user, python.group) == (str(tmp_path / "rootfs"), 1000, 100)
    assert (python.working_dir, python.env, list(python.command)) == ("/srv", {"A": "b"}, ["python3"])
    torch = mapping.image("pytorch/pytorch:2.9")
    assert (torch.root, torch.directory) == ("", str(tmp_path / "torch"))
    assert (list(torch.entrypoint), list(torch.command)) == (["python3"], ["-V"])
    with pytest.raises(ConfigProblem) as caught:
        mapping.image("python:3.11")
    assert caught.value.reason == "ErrImagePull"


def test_what_a_well_known_image_runs_can_be_something_else(tmp_path: Path) -> None:
    found = images(tmp_path, "images: [{match: grove-initc, entrypoint: [sleep], command: ['1']}]").image(
        "grove-initc:1"
    )
    assert (list(found.entrypoint), list(found.command)) == (["sleep"], ["1"])


def test_what_nobody_mapped_can_be_forbidden(tmp_path: Path) -> None:
    mapping = images(tmp_path, 'default: forbidden\nimages: [{match: "team/*"}]')
    assert mapping.image("team/app").root == ""
    with pytest.raises(ConfigProblem) as caught:
        mapping.image("other:1")
    assert caught.value.reason == "ErrImagePull"
    assert caught.value.message == (
        f"image \"other:1\" is forbidden on this node: add an entry with match: 'other:1' and a root to "
        f"{tmp_path}/images.yaml"
    )
    with pytest.raises(ConfigProblem) as caught:
        mapping.image("other:1", pull_policy="Never")
    assert caught.value.reason == "ErrImageNeverPull"


def test_a_root_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigProblem, match=f'the root of image "a" in .* is not a folder: {tmp_path}/gone'):
        images(tmp_path, "images: [{match: a, root: gone}]").image("a")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("images: {", "is not YAML"),
        ("[]", "Expected `object`, got `array`"),
        ("default: docker", "default is 'docker': write host or forbidden"),
        ("imges: []", "unknown field `imges`"),
        ("images: [{root: host}]", r"images\[0\]: Object missing required field `match`"),
        ("images: [{match: a}, {match: b, rot: host}]", r"images\[1\]: Object contains unknown field `rot`"),
        ("images: [{match: a, env: {A: 1}}]", r"images\[0\]: Expected `str`, got `int` - at `\$.env"),
        ("images: [{match: ''}]", r"images\[0\]: match is empty"),
        ("images: [{match: []}]", r"images\[0\]: match is empty"),
        ("images: [{match: a, root: ''}]", r"images\[0\]: root is empty"),
        ("images: [{match: a, root: /x, directory: /y}]", r"images\[0\]: directory is set, but root is '/x'"),
        ("images: [{match: a, workingDir: b}]", r"images\[0\]: workingDir is 'b'"),
        ("images: [{match: a, user: root}]", r"images\[0\]: user is 'root': write a number"),
        ("images: [{match: a, user: -1}]", r"images\[0\]: user is -1"),
        ("images: [{match: a, env: {'A=B': c}}]", r"images\[0\]: env has the name 'A=B'"),
    ],
)
def test_a_broken_file_is_named_with_entry_and_field_and_nothing_runs(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigProblem, match=sentence) as caught:
        images(tmp_path, text).image("a")
    assert caught.value.reason == "ErrImagePull"
    assert caught.value.message.startswith(str(tmp_path / "images.yaml"))
    assert "\n" not in caught.value.message


def test_the_file_is_read_again_once_it_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "images.yaml"
    mapping = Images(file)
    assert mapping.image("a").root == ""
    file.write_text("default: forbidden")
    with pytest.raises(ConfigProblem):
        mapping.image("a")
    file.write_text("default: [")
    os.utime(file, ns=(1, 1))
    with pytest.raises(ConfigProblem, match="not YAML"):
        mapping.image("a")
    file.unlink()
    assert mapping.image("a").root == ""
