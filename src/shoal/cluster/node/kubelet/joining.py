"""Lets a client take part in a command, by whichever protocol it speaks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from aiohttp import web

from shoal.cluster.node.kubelet.channels import Channels, Ends, Wanted
from shoal.cluster.node.kubelet.spdy_channels import SpdyEnds
from shoal.cluster.node.kubelet.websocket_channels import WebSocketEnds
from shoal.cluster.node.kubelet.wires import is_spdy


async def join(request: web.Request, wanted: Wanted, talk: Callable[[Channels], Awaitable[None]]) -> web.StreamResponse:
    """Accepts a client and has it talked to, until that is done or the client leaves; raises Refused."""
    ends: Ends = await (SpdyEnds if is_spdy(request) else WebSocketEnds).accept(request, wanted)
    with suppress(ConnectionError):
        async with ends.opened():
            await talk(Channels(request, ends))
    return ends.response
