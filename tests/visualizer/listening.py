"""A listener of the stream: reads server-sent events as a browser does, and keeps the state that they tell."""

from __future__ import annotations

from typing import Any, NamedTuple

import aiohttp
import msgspec


class Message(NamedTuple):
    event: str
    data: Any
    id: str


class Listener:
    """Applies what it hears; what it knows is what the routes would say."""

    def __init__(self, response: aiohttp.ClientResponse, after: Listener | None = None) -> None:
        self._response = response
        self.comments: list[str] = []
        self.heard: list[Message] = []
        self.last_id: str = after.last_id if after else ""
        self.summary: Any = after.summary if after else None
        of = after.of if after else {"nodes": {}, "queues": {}, "jobs": {}}
        self.of: dict[str, dict[str, Any]] = {kind: dict(known) for kind, known in of.items()}

    def copied(self) -> Listener:
        """One who knows the same, for later."""
        return Listener(self._response, self)

    async def cycle(self) -> list[Message]:
        """Listens up to the end of what belongs together, applies it and gives it."""
        heard: list[Message] = []
        while not heard or heard[-1].event != "cycle":
            message = await self.message()
            if message is not None:
                heard.append(message)
        for message in heard:
            self._apply(message)
        self.heard += heard
        return heard

    async def message(self) -> Message | None:
        """The next message, or None where it was a comment or an instruction."""
        event, data, given = "message", [], ""
        while (line := (await self._response.content.readuntil(b"\n")).decode().rstrip("\n")) != "":
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            match name:
                case "":
                    self.comments.append(value)
                case "event":
                    event = value
                case "data":
                    data.append(value)
                case "id":
                    given = value
        assert not self._response.content.at_eof(), "the stream has ended"
        return Message(event, msgspec.json.decode("\n".join(data)), given) if data else None

    def _apply(self, message: Message) -> None:
        match message.event:
            case "reset":
                self.of = {"nodes": {}, "queues": {}, "jobs": {}}
                self.summary = None
            case "summary":
                self.summary = message.data
            case "cycle":
                self.last_id = message.id
            case kind:
                known = self.of[kind]
                for one in message.data["upserted"]:
                    known[_key(kind, one)] = one
                for key in message.data["deleted"]:
                    del known[key]

    @property
    def nodes(self) -> list[Any]:
        return sorted(self.of["nodes"].values(), key=lambda node: node["name"])

    @property
    def jobs(self) -> list[Any]:
        return sorted(self.of["jobs"].values(), key=lambda job: (job["namespace"], job["name"], job["uid"]))

    @property
    def queues(self) -> list[Any]:
        """The tree, put together by the names of parents."""
        ordered = [{**queue, "children": []} for _, queue in sorted(self.of["queues"].items())]
        by_name = {queue["metadataName"]: queue for queue in ordered}
        for queue in ordered:
            if queue["parent"] in by_name:
                by_name[queue["parent"]]["children"].append(queue)
        return [queue for queue in ordered if queue["parent"] not in by_name]


def _key(kind: str, one: Any) -> str:
    named = {"nodes": "name", "queues": "metadataName", "jobs": "uid"}
    key: str = one[named[kind]]
    return key
