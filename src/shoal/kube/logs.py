"""Logs as events with fields: readable lines on a terminal, JSON elsewhere."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from typing import Any, TextIO, cast

import structlog


def configure_logs(*, level: str = "info", as_json: bool | None = None) -> None:
    """Sets up logging for a process; by default JSON unless a person is looking."""
    json_lines = not sys.stderr.isatty() if as_json is None else as_json
    processors: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
    ]
    if json_lines:
        processors += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    else:
        # Plain: to draw the variables of every frame takes seconds where they hold a cluster, and shows secrets.
        processors.append(structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback))
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.PrintLoggerFactory(file=cast("TextIO", _Lossy(sys.stderr))),
        cache_logger_on_first_use=True,
    )


class _Lossy:
    """A stream where what cannot be written is lost: a full disk must not fail those who only tell of it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()
