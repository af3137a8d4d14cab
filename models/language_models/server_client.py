"""The HTTP client that servers are asked with: it follows no redirect, and reads no answer without end."""

from __future__ import annotations

from typing import Any

import openai

from twinset.models.language_models.server_faults import BrokenAnswer

LONGEST_ANSWER = 1 << 24  # bytes, unpacked: 100,000 tokens are a few million
_CHUNK = 1 << 16  # bytes
#: What is no longer true of a body that was read and unpacked.
_OF_THE_WIRE = ("content-encoding", "content-length", "transfer-encoding")


class BoundedClient(openai.DefaultAsyncHttpxClient):
    """Hands requests to the named server alone: what they say is not sent on to another one that it names."""

    def __init__(self) -> None:
        super().__init__(follow_redirects=False)

    async def send(self, request: Any, *, stream: bool = False, **settings: Any) -> Any:
        """The response with its whole body, whatever ``stream`` says.

        Raises `BrokenAnswer` for a body of more than `LONGEST_ANSWER` bytes, of which no more is read.
        """
        response = await super().send(request, stream=True, **settings)
        body = bytearray()
        try:
            async for part in response.aiter_bytes(_CHUNK):
                body += part
                if len(body) > LONGEST_ANSWER:
                    raise BrokenAnswer(f"an answer of more than {LONGEST_ANSWER:,} bytes")
        finally:
            await response.aclose()
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_THE_WIRE]
        return type(response)(response.status_code, headers=headers, content=bytes(body), request=request)
