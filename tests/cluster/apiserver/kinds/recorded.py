"""Objects as Go writes them, recorded by ``make kind-tables``."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Example:
    """One object: what a client sends, as protobuf and as JSON, and what Go writes of it after reading."""

    api_version: str
    kind: str
    protobuf: bytes
    given: dict[str, Any]
    written: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.api_version}/{self.kind}"


def examples() -> list[Example]:
    lines = (Path(__file__).parent / "examples.jsonl").read_text().splitlines()
    return [example(json.loads(line)) for line in lines]


def example(row: dict[str, Any]) -> Example:
    raw = base64.b64decode(row["protobuf"])
    return Example(row["apiVersion"], row["kind"], raw, row["given"], row["written"])
