"""What goes back to a client: whole, of known length, and with headers that tell browsers to be careful."""

import json
from collections.abc import Mapping

from starlette.responses import Response

from spigot_nlp.serve.resources import Resource

HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}
"""What every reply says unless it says otherwise."""

JSON = "application/json; charset=utf-8"
_USUAL = [(name.encode(), value.encode()) for name, value in {**HEADERS, "content-type": JSON}.items()]


def as_json(value: object) -> bytes:
    r"""A value as JSON, in ASCII.

    Example:
        >>> as_json({"error": "naïve"})
        b'{"error": "na\\u00efve"}'
    """
    return json.dumps(value, allow_nan=False).encode("ascii")


def reply(body: bytes, kind: str = JSON, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A reply.

    Args:
        body: Its bytes.
        kind: Their media type.
        status: The code of HTTP.
        headers: What to say beside, or instead of, the usual.

    Example:
        >>> reply(b"{}").headers["cache-control"]
        'no-store'
    """
    found = Response(body, status)
    if not headers and kind == JSON:  # most of them, so they are not encoded anew
        found.raw_headers = [*_USUAL, (b"content-length", str(len(body)).encode())]
    else:
        found.init_headers({**HEADERS, "content-type": kind, **(headers or {})})
    return found


def refusal(status: int, reason: str, headers: Mapping[str, str] | None = None) -> Response:
    """One sentence about why there is no answer.

    Example:
        >>> refusal(503, "try again soon.").headers["retry-after"]
        '1'
    """
    later = {"retry-after": "1"} if status == 503 else {}
    return reply(as_json({"error": reason}), status=status, headers={**later, **(headers or {})})


def resource(found: Resource) -> Response:
    """Something that a browser fetches.

    Example:
        >>> resource(Resource("text/plain", b"rain")).body
        b'rain'
    """
    policy = {"content-security-policy": found.policy} if found.policy else {}
    return reply(found.body, found.kind, headers=policy)
