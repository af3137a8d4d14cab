"""Bounds of connections to the page: how long each may take, and how many there may be; crowds give way to others.

uvicorn has a timeout for a connection that was used, none for one that never sends a whole request, and none for one
that does not read its reply.
"""

import asyncio
from collections import Counter
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from twinset.review.access import address_of

REQUEST_SECONDS = 10.0  # from the connection, or the first byte of a further request, to the last byte of its body
REPLY_SECONDS = 300.0  # from there until the reply was sent; an admin's export of a large stage takes a while
KEPT_SECONDS = 5  # after a reply, until a further request
MOST_CONNECTIONS = 500  # each is an open file, of which a process may usually have 1,024


class BoundedConnection(H11Protocol):
    """uvicorn's connection with deadlines.

    Beyond `MOST_CONNECTIONS`, the one is closed that waits longest for its client, of those from the address with the
    most of them: the idle connections of one address leave room for others, and for requests from the same address,
    as all are behind a proxy.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.address, self._since = "", self.loop.time()
        self._deadline: asyncio.TimerHandle | None = None
        self._phase: tuple[float, object] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected."""
        super().connection_made(transport)
        self._update()
        self.address = address_of(self.client)
        if len(self.connections) > MOST_CONNECTIONS:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """A part of a request has come, or several requests."""
        super().data_received(data)
        self._update()

    def on_response_complete(self) -> None:
        """A reply was handed to the transport."""
        super().on_response_complete()
        self._update()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        super().connection_lost(exc)
        if self._deadline is not None:
            self._deadline.cancel()

    def _is_served(self) -> bool:
        """Whether its client waits for us, rather than we for it."""
        cycle = self.cycle
        return cycle is not None and not cycle.more_body and not cycle.response_complete and not self.flow.write_paused

    def _update(self) -> None:
        """Set the deadline of what the connection is at, where it is at something else than before."""
        cycle, phase = self.cycle, (REQUEST_SECONDS, self.cycle)
        if cycle is not None and not cycle.more_body and not cycle.response_complete:
            phase = REPLY_SECONDS, cycle
        elif cycle is not None and self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
            phase = 0.0, cycle  # uvicorn closes it after `KEPT_SECONDS`
        if phase == self._phase or self.transport.is_closing():
            return
        self._phase, self._since = phase, self.loop.time()
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(phase[0], self._end) if phase[0] else None

    def _make_room(self) -> None:
        all_of_them = [one for one in self.connections if isinstance(one, BoundedConnection)]
        [(crowd, _)] = Counter(one.address for one in all_of_them).most_common(1)
        waiting = [one for one in all_of_them if one.address == crowd and not one._is_served()]
        min(waiting, key=lambda one: one._since, default=self)._end()

    def _end(self) -> None:
        self.connections.discard(self)  # it is lost only at the loop's next turn, and others may come before
        self.transport.abort()  # `close` would wait for a client that does not read
