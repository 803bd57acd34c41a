"""What stops a scheduler from starting."""

from __future__ import annotations


class ConfigurationError(Exception):
    """Something that cannot be followed: where it is written, in which field, and what to write instead."""

    def __init__(self, source: str, field: str, problem: str) -> None:
        self.source = source
        self.field = field
        self.problem = problem
        super().__init__(f"{source}: {field} {problem}" if field else f"{source} {problem}")
