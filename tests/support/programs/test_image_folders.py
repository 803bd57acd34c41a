"""Folders for images are made once, and what cannot be made says why in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.programs import image_folders
from tests.support.programs.image_folders import Unavailable, made


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setattr(image_folders, "_cache", lambda: folder)
    return folder


def a_script(folder: Path, text: str) -> Path:
    """One that is told the folder and the images, as make-images is."""
    script = folder / "make-images"
    script.write_text(f"#!/bin/sh\nset -e\n{text}\n")
    script.chmod(0o755)
    return script


def test_it_is_made_once(tmp_path: Path) -> None:
    script = a_script(tmp_path, f'mkdir -p "$1/$2"; echo made >>{tmp_path}/times; echo "$WORD" >"$1/$2/word"')
    first = made(script, "one", called="One", WORD="hello")
    assert (first / "one" / "word").read_text() == "hello\n"
    assert made(script, "one", called="One", WORD="hello") == first
    assert (tmp_path / "times").read_text() == "made\n"


@pytest.mark.parametrize("changed", ["script", "pins", "variable", "image"])
def test_it_is_made_anew_when_what_it_is_made_from_changes(tmp_path: Path, changed: str) -> None:
    pins = tmp_path / "pins.txt"
    pins.write_text("a==1")
    script = a_script(tmp_path, 'mkdir -p "$1/$2"')
    before = made(script, "one", called="One", pins=pins, WORD="hello")
    if changed == "script":
        script.write_text(script.read_text() + "true\n")
    if changed == "pins":
        pins.write_text("a==2")
    image, word = ("two" if changed == "image" else "one"), ("bye" if changed == "variable" else "hello")
    assert made(script, image, called="One", pins=pins, WORD=word) != before


def test_what_cannot_be_made_says_why_in_one_line_and_is_tried_again(tmp_path: Path) -> None:
    script = a_script(
        tmp_path, 'mkdir -p "$1"; echo trying >&2; [ -e "$READY" ] || { echo "no line to anywhere" >&2; exit 1; }'
    )
    ready = tmp_path / "ready"
    with pytest.raises(Unavailable, match=r"\AOne could not be installed: no line to anywhere\Z"):
        made(script, "one", called="One", READY=str(ready))
    ready.touch()
    made(script, "one", called="One", READY=str(ready))
