"""The visualizer: the scheduler's published view as JSON over HTTP, for pages and for curl.

``shapes`` says what the JSON looks like, as pure functions of a view. `Library` keeps what was encoded for as long
as somebody asks, `Publisher` takes views from the scheduler, and `routes` answers; nothing here touches a scheduler's
own state.
"""

from shoal.visualizer.access import Accepts, bearer_tokens
from shoal.visualizer.publisher import Published, Publisher
from shoal.visualizer.routes import PREFIX, catch_all, routes
from shoal.visualizer.slices import take_short_turns

__all__ = ["PREFIX", "Accepts", "Published", "Publisher", "bearer_tokens", "catch_all", "routes", "take_short_turns"]
