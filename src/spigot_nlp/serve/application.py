"""The page and the JSON interface as an ASGI application: every route, and its description by OpenAPI."""

import functools
import importlib.resources
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import torch
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

import spigot
from spigot_nlp.plugins import load_inherited
from spigot_nlp.report.arcs import STYLE, legend
from spigot_nlp.report.figures import theme
from spigot_nlp.report.marks import DEMANDS, sign
from spigot_nlp.serve.api import Api, Metrics
from spigot_nlp.serve.limits import HEADERS, Guard, read_body, refusal, reply
from spigot_nlp.serve.requests import ParseRequest, Refused
from spigot_nlp.serve.responses import (
    ErrorResponse,
    HealthResponse,
    ParseResponse,
    ReadyResponse,
    SentenceParse,
    SystemsResponse,
)
from spigot_nlp.serve.settings import Settings
from spigot_nlp.serve.systems import open_systems

JSON_LINES = "application/x-ndjson"
_JSON, _TEXT = "application/json", "text/plain"
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_PAGES = {"/page.html": "/", "/docs.html": "/docs"}
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
_POLICY += "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"  # scripts and styles come from here alone


async def parse(request: Request) -> Response:
    """Structures, scores, next-best heads and drawings: in one answer or, if accepted, in a line for each sentence."""
    api = _api(request)
    streamed = JSON_LINES in request.headers.get("accept", "")
    body = await read_body(request, api.limits.stream if streamed else api.limits.body, api.limits.patience)
    kind = request.headers.get("content-type", _TEXT).partition(";")[0].strip().lower()
    if kind != _JSON:  # a page elsewhere could send other kinds without asking first
        raise Refused(415, f"the body is {kind[:80]}; send {_JSON}.")
    if streamed:
        state = request.scope.get("state", {})
        lines = await api.stream(body, lambda: state.get("closing"))
        return StreamingResponse(lines, headers={**HEADERS, "content-type": JSON_LINES})
    return reply(await api.answer(body))


async def systems(request: Request) -> Response:
    """What each system gives, and how much may be asked."""
    return _json(_api(request).systems)


async def health(request: Request) -> Response:
    """200 as long as the process lives."""
    return _json(_api(request).health)


async def ready(request: Request) -> Response:
    """200 if a request now would be answered."""
    if not _api(request).is_ready:
        raise Refused(503, "as many requests wait as may; send no more for now.")
    return _json(ReadyResponse(status="ready"))


async def metrics(request: Request) -> Response:
    """Counts of this process in the text format of Prometheus."""
    return reply(generate_latest(request.app.state.metrics.registry), headers={"content-type": CONTENT_TYPE_LATEST})


class _Operation(NamedTuple):
    """A route of the interface, as it is described."""

    path: str
    answer: Callable[[Request], Awaitable[Response]]
    summary: str
    gives: dict[str, type[BaseModel] | None]
    refuses: tuple[int, ...] = ()
    takes: type[BaseModel] | None = None

    @property
    def method(self) -> str:
        return "get" if self.takes is None else "post"


_REFUSALS = {
    400: "What was sent is malformed.",
    401: "The token of this server is missing or wrong.",
    403: "The page or the name of the server is not one that may be asked.",
    404: "No system has that name.",
    408: "The body did not arrive in time.",
    411: "The request does not say how long its body is.",
    413: "That is too much at a time.",
    415: "The body is no JSON.",
    422: "The constraints are met by no structure, or mean nothing to these systems.",
    503: "Too many requests wait, or the answer took too long: try again.",
}
_OPERATIONS = (
    _Operation(
        "/api/parse",
        parse,
        "Parse text, or the words of a sentence",
        {_JSON: ParseResponse, JSON_LINES: SentenceParse},
        tuple(_REFUSALS),
        ParseRequest,
    ),
    _Operation("/api/systems", systems, "What there is to ask", {_JSON: SystemsResponse}, (401,)),
    _Operation("/health", health, "Whether somebody is there", {_JSON: HealthResponse}),
    _Operation("/ready", ready, "Whether a request now would be answered", {_JSON: ReadyResponse}, (503,)),
    _Operation("/metrics", metrics, "Counts in the text format of Prometheus", {_TEXT: None}, (401,)),
)


def openapi(*, token: bool = False) -> dict[str, Any]:
    """The interface in the form of OpenAPI 3.1: the document that `GET /openapi.json` gives.

    Args:
        token: Whether clients must send a token.

    Example:
        >>> found = openapi()
        >>> sorted(found["paths"])
        ['/api/parse', '/api/systems', '/health', '/metrics', '/ready']
    """
    models = [(model, "serialization") for one in _OPERATIONS for model in one.gives.values() if model]
    asked = [(one.takes, "validation") for one in _OPERATIONS if one.takes]
    _, schemas = models_json_schema(
        [*asked, *models, (ErrorResponse, "serialization")],  # pyright: ignore[reportArgumentType] (one of the two modes)
        ref_template="#/components/schemas/{model}",
    )

    def content(models: dict[str, type[BaseModel] | None]) -> dict[str, Any]:
        named = {kind: model and {"$ref": f"#/components/schemas/{model.__name__}"} for kind, model in models.items()}
        return {kind: {"schema": schema or {"type": "string"}} for kind, schema in named.items()}

    def described(one: _Operation) -> dict[str, Any]:
        about = (one.answer.__doc__ or "").strip()
        found: dict[str, Any] = {"summary": one.summary, "description": about}
        if one.takes:
            found["requestBody"] = {"required": True, "content": content({_JSON: one.takes})}
        refused = {
            code: {"description": _REFUSALS[code], "content": content({_JSON: ErrorResponse})} for code in one.refuses
        }
        found["responses"] = {"200": {"description": "The answer.", "content": content(one.gives)}}
        found["responses"].update({str(code): why for code, why in refused.items()})
        if token and 401 in one.refuses:
            found["security"] = [{"token": []}]
        return found

    components = {"schemas": dict(sorted(schemas["$defs"].items()))}
    if token:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    about = "Trained systems that parse sentences: trees, graphs and classes, with constraints."
    return {
        "openapi": "3.1.0",
        "info": {"title": "spigot", "version": spigot.__version__, "description": about},
        "paths": {one.path: {one.method: described(one)} for one in _OPERATIONS},
        "components": components,
    }


def page_files() -> dict[str, Response]:
    """The pages and what they refer to, by path, held in memory."""
    found = {}
    for file in importlib.resources.files("spigot_nlp.serve").joinpath("page").iterdir():
        suffix = file.name[file.name.rfind(".") :]
        if suffix not in _KINDS:
            continue
        text = file.read_text(encoding="utf-8")
        if suffix == ".css":  # with the colours that drawings refer to
            for name, dark in (("light", False), ("dark", True)):
                colours = "".join(f"  {variable}: {value};\n" for variable, value in theme(dark).items())
                text = text.replace(f"/* {name} theme */", colours.strip())
            text += STYLE
        if suffix == ".html":
            text = text.replace("<!-- legend -->", legend(["new", "gone"], demands=DEMANDS, styled=False))
            for held in DEMANDS:
                text = text.replace(f"<!-- {held} sign -->", sign(held))
        headers = {"content-type": f"{_KINDS[suffix]}; charset=utf-8"}
        if suffix == ".html":
            headers["content-security-policy"] = _POLICY
        path = f"/{file.name}"
        found[_PAGES.get(path, path)] = reply(text.encode(), headers=headers)
    return found


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
    metrics = Metrics() if api is None else api.metrics
    guarded = Middleware(Guard, settings=settings, metrics=metrics)
    outside = Middleware(
        CORSMiddleware,
        allow_origins=list(settings.origins),
        allow_methods=["GET", "POST"],
        allow_headers=["Authorization", "Content-Type"],
    )
    described = reply(json.dumps(openapi(token=settings.token is not None)).encode())
    app = Starlette(
        routes=[
            *(Route(one.path, one.answer, methods=[one.method]) for one in _OPERATIONS),
            Route("/openapi.json", _always(described)),
            *(Route(path, _always(found)) for path, found in page_files().items()),
        ],
        middleware=[outside, guarded] if settings.origins else [guarded],
        exception_handlers={404: _nothing, 405: _no_method},
        lifespan=functools.partial(_lifespan, api=api, settings=settings, metrics=metrics),
    )
    app.router.redirect_slashes = False
    app.state.settings, app.state.api, app.state.metrics = settings, api, metrics
    return app


def from_environment() -> Starlette:
    """The application that the variables of this process describe: what `uvicorn spigot_nlp.serve:app` runs.

    Raises:
        ValueError: If one of them is not understood.
    """
    return create_app(settings=Settings.from_environment(os.environ))


@asynccontextmanager
async def _lifespan(
    app: Starlette, *, api: Api | None, settings: Settings, metrics: Metrics
) -> AsyncIterator[dict[str, Any]]:
    """Load, and let what is under way be finished."""
    if api is not None:
        _ = api.systems  # chooses the examples, before anybody waits for them
        yield {"limits": api.limits}
        return
    load_inherited()
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    loaded = list(open_systems(settings.runs, settings.device, settings.precision))
    with Api(loaded, settings.limits, metrics) as made:
        _ = made.systems
        app.state.api = made
        yield {"limits": settings.limits}
        app.state.api = None


def _api(request: Request) -> Api:
    found: Api | None = request.app.state.api
    if found is None:
        raise Refused(503, "the server is starting or closing; try again soon.")
    return found


def _json(response: BaseModel) -> Response:
    return reply(response.model_dump_json().encode())


def _always(found: Response) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return found

    return answer


async def _nothing(request: Request, problem: Exception) -> Response:
    places = ", ".join(("/", "/docs", "/openapi.json", *(one.path for one in _OPERATIONS)))
    return refusal(404, f"there is nothing at {request.url.path[:80]}; there are {places}.")


async def _no_method(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    allowed = sorted(name.strip() for name in (problem.headers or {}).get("Allow", "").split(","))
    reason = f"{request.method[:20]} is not allowed at {request.url.path[:80]}; use {allowed[0]}."
    return refusal(405, reason, {"allow": ", ".join(allowed)})
