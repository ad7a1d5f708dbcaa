"""The page and its interface as an ASGI application."""

import functools
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import torch
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from spigot_nlp.plugins import load_inherited
from spigot_nlp.serve.api import Api
from spigot_nlp.serve.guard import Guard, Origins, read_body
from spigot_nlp.serve.metrics import Metrics
from spigot_nlp.serve.openapi import openapi
from spigot_nlp.serve.query import Refused
from spigot_nlp.serve.replies import as_json, refusal, reply, resource
from spigot_nlp.serve.resources import resources
from spigot_nlp.serve.settings import Settings
from spigot_nlp.serve.systems import open_systems

_PLACES = "/, /docs, /health, /ready, /metrics, /api/systems and /api/parse"
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def create_app(api: Api | None = None, settings: Settings = Settings()) -> Starlette:
    """An application that serves a page and the JSON interface.

    Args:
        api: What answers. Without one, the runs of the settings are loaded when the application starts, and closed when
            it ends.
        settings: Who may ask, and how much.

    Example:
        >>> app = create_app(settings=Settings(origins=("https://example.org",)))
        >>> [route.path for route in app.routes][:3]
        ['/api/parse', '/api/systems', '/health']
    """
    metrics = Metrics(settings.metrics) if api is None else api.metrics
    guarded = Middleware(Guard, settings=settings, metrics=metrics)
    outside = Middleware(
        Origins,
        allow_origins=list(settings.origins),
        allow_methods=["GET", "POST"],
        allow_headers=["Authorization", "Content-Type"],
    )
    app = Starlette(
        routes=[
            Route("/api/parse", _parse, methods=["POST"]),
            Route("/api/systems", _systems),
            Route("/health", _health),
            Route("/ready", _ready),
            Route("/metrics", _metrics),
            Route("/openapi.json", _always(reply(as_json(openapi(token=settings.token is not None))))),
            *(Route(path, _always(resource(found))) for path, found in resources().items()),
        ],
        middleware=[outside, guarded] if settings.origins else [guarded],
        exception_handlers={404: _nothing, 405: _no_method},
        lifespan=functools.partial(_lifespan, api=api, settings=settings, metrics=metrics),
    )
    app.router.redirect_slashes = False
    app.state.settings, app.state.metrics, app.state.api = settings, metrics, api
    return app


def from_environment() -> Starlette:
    """The application that the variables of this process describe: what `uvicorn spigot_nlp.serve:app` runs.

    Raises:
        ValueError: If one of them is not understood.

    Example:
        >>> from_environment().state.settings.device
        'cpu'
    """
    return create_app(settings=Settings.from_environment(os.environ))


@asynccontextmanager
async def _lifespan(
    app: Starlette, *, api: Api | None, settings: Settings, metrics: Metrics
) -> AsyncIterator[dict[str, Any]]:
    """Load, and let what is under way be finished."""
    if api is not None:
        yield {"limits": api.limits}
        return
    load_inherited()
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    systems = list(open_systems(settings.runs, settings.device, settings.precision))
    with Api(systems, settings.limits, together=settings.together, metrics=metrics) as made:
        made.systems()  # chooses the examples, before anybody waits for them
        app.state.api = made
        yield {"limits": settings.limits}
        app.state.api = None


def _api(request: Request) -> Api:
    found: Api | None = request.app.state.api
    if found is None:
        raise Refused(503, "the server is starting or closing; try again soon.")
    return found


async def _parse(request: Request) -> Response:
    api = _api(request)
    body = await read_body(request, api.limits)
    kind = request.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    if kind != "application/json":  # a page elsewhere could send other kinds without asking first
        raise Refused(415, f"the body is {kind[:80]}; send application/json.")
    return reply(await api.answer(body))


async def _systems(request: Request) -> Response:
    api = _api(request)
    return reply(await api.in_thread(lambda: as_json(api.systems())))


async def _health(request: Request) -> Response:
    return reply(as_json(_api(request).health()))


async def _ready(request: Request) -> Response:
    if not _api(request).is_ready:
        raise Refused(503, "as many requests wait as may; send no more for now.")
    return reply(as_json({"status": "ready"}))


async def _metrics(request: Request) -> Response:
    return reply(request.app.state.metrics.text().encode(), _PROMETHEUS)


def _always(found: Response) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return found

    return answer


async def _nothing(request: Request, problem: Exception) -> Response:
    return refusal(404, f"there is nothing at {request.url.path[:80]}; there are {_PLACES}.")


async def _no_method(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    allowed = sorted(name.strip() for name in (problem.headers or {}).get("Allow", "").split(","))
    reason = f"{request.method[:20]} is not allowed at {request.url.path[:80]}; use {allowed[0]}."
    return refusal(405, reason, {"allow": ", ".join(allowed)})
