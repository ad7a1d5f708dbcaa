"""The description of the interface, in the form of OpenAPI 3.1."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

import spigot
from spigot_nlp.serve.schemas import (
    ErrorAnswer,
    HealthAnswer,
    ParseAnswer,
    ParseRequest,
    ReadyAnswer,
    SystemsAnswer,
)

_REFUSALS = {
    400: "What was sent is malformed.",
    401: "The token of this server is missing or wrong.",
    404: "No system has that name.",
    408: "The body did not arrive in time.",
    411: "The request does not say how long its body is.",
    413: "That is too much at a time.",
    415: "The body is no JSON.",
    422: "The constraints are met by no structure, or mean nothing to these systems.",
    503: "Too many requests wait, or the answer took too long: try again.",
}


def openapi(*, token: bool = False) -> dict[str, Any]:
    """The document that `GET /openapi.json` gives.

    Args:
        token: Whether clients must send a token.

    Example:
        >>> found = openapi()
        >>> sorted(found["paths"])
        ['/api/parse', '/api/systems', '/health', '/metrics', '/ready']
        >>> "ParseRequest" in found["components"]["schemas"]
        True
    """
    models = (ParseRequest, ParseAnswer, SystemsAnswer, HealthAnswer, ReadyAnswer, ErrorAnswer)
    schemas = {
        name: found
        for mode, some in (("validation", models[:1]), ("serialization", models[1:]))
        for name, found in models_json_schema(
            [(model, mode) for model in some],  # pyright: ignore[reportArgumentType] (one of the two modes)
            ref_template="#/components/schemas/{model}",
        )[1]["$defs"].items()
    }
    for found in schemas.values():  # examples of docstrings are for those who read Python
        found["description"] = " ".join(found.get("description", "").split("\n\n")[0].split())
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "spigot",
            "version": spigot.__version__,
            "description": "Trained systems that parse sentences: trees, graphs and classes, with constraints.",
        },
        "paths": {
            "/api/parse": {"post": _parse()},
            "/api/systems": {"get": _get("What there is to ask", SystemsAnswer, 401)},
            "/health": {"get": _get("Whether somebody is there", HealthAnswer)},
            "/ready": {"get": _get("Whether a request now would be answered", ReadyAnswer, 503)},
            "/metrics": {
                "get": {
                    "summary": "Counts in the text format of Prometheus",
                    "responses": {
                        "200": {
                            "description": "The counts.",
                            "content": {"text/plain": {"schema": {"type": "string"}}},
                        },
                        **_refused(401),
                    },
                }
            },
        },
        "components": {"schemas": dict(sorted(schemas.items()))},
    }
    if token:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path in ("/api/parse", "/api/systems", "/metrics"):
            for operation in document["paths"][path].values():
                operation["security"] = [{"token": []}]
    return document


def _parse() -> dict[str, Any]:
    return {
        "summary": "Parse text, or the words of a sentence",
        "description": "Structures, scores, next-best heads and drawings.",
        "requestBody": {"required": True, "content": _content(ParseRequest)},
        "responses": {
            "200": {"description": "What was found in each sentence.", "content": _content(ParseAnswer)},
            **_refused(*_REFUSALS),
        },
    }


def _get(summary: str, model: type[BaseModel], *refusals: int) -> dict[str, Any]:
    answer = {"description": (model.__doc__ or "").strip().splitlines()[0], "content": _content(model)}
    return {"summary": summary, "responses": {"200": answer, **_refused(*refusals)}}


def _refused(*codes: int) -> dict[str, Any]:
    return {str(code): {"description": _REFUSALS[code], "content": _content(ErrorAnswer)} for code in codes}


def _content(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}
