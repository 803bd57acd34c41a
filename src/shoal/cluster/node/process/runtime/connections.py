"""Those who ask the runtime, and where their answers go."""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Callable
from typing import Any

import msgspec

from shoal.cluster.node.process.runtime.journal import note
from shoal.cluster.node.process.runtime.lines import Channel, Lost
from shoal.cluster.node.process.runtime.loop import Loop
from shoal.cluster.node.process.runtime.protocol import Answer, Line, Question, encoded
from shoal.cluster.node.process.runtime.refusals import Refused

_questions = msgspec.json.Decoder(Question)
_lines = msgspec.json.Encoder()


class Reply:
    """The one who asked, and the number of the question."""

    def __init__(self, connection: Connection, number: int) -> None:
        self.connection = connection
        self._number = number

    def give(self, result: Any = None, descriptors: tuple[int, ...] = ()) -> None:
        """Answers; the descriptors stay the caller's."""
        answer = Answer(number=self._number, result=encoded(result), descriptors=len(descriptors))
        self.connection.tell(Line(answer=answer), descriptors)

    def refuse(self, refused: Refused) -> None:
        """Answers that it cannot be, and why."""
        answer = Answer(number=self._number, reason=refused.reason, message=refused.message)
        self.connection.tell(Line(answer=answer))


class Connection:
    """A client."""

    def __init__(
        self,
        connected: socket.socket,
        loop: Loop,
        *,
        answer: Callable[[Question, list[int], Reply], None],
        closed: Callable[[Connection], None],
    ) -> None:
        self._channel = Channel(connected)
        self._descriptor = self._channel.fileno()
        self._loop = loop
        self._answer = answer
        self._closed = closed
        self.is_open = True
        loop.watch(self._descriptor, self._advance)

    def tell(self, line: Line, descriptors: tuple[int, ...] = ()) -> None:
        """Sends a line, unless the client is gone."""
        if self.is_open:
            self._try(lambda: self._channel.send(_lines.encode(line), descriptors))

    def close(self, why: str = "") -> None:
        """Lets the client go."""
        if self.is_open:
            self.is_open = False
            self._loop.forget(self._descriptor)
            self._channel.close()
            self._closed(self)
            if why:
                note("a client was let go", why=why)

    def _advance(self, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._try(self._channel.flush)
        if self.is_open and events & selectors.EVENT_READ:
            self._try(self._read)

    def _try(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Lost as lost:
            self.close(str(lost))
        except msgspec.MsgspecError as error:
            self.close(f"a line is not a question: {error}")
        if self.is_open:
            self._loop.change(self._descriptor, with_writing=self._channel.has_unsent)

    def _read(self) -> None:
        for line in self._channel.receive():
            question = _questions.decode(line)
            descriptors = self._channel.take(question.descriptors)
            try:
                self._answer(question, descriptors, Reply(self, question.number))
            finally:
                for one in descriptors:
                    os.close(one)
            if not self.is_open:
                return
