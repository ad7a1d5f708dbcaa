"""What is served, to whom, and how much: settings in Python, or from the environment of a process."""

import difflib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from spigot_nlp.bundled import default_model
from spigot_nlp.encoders import READING, Precision

_ORIGIN = re.compile(r"\*|https?://[^\s/?#@*]+")
_PREFIX = "SPIGOT_SERVE_"
_Whole = Annotated[int, Field(gt=0, lt=10**12)]
_Seconds = Annotated[float, Field(gt=0, lt=10**12)]


class _Values(BaseModel):
    """Values that say in one sentence what is wrong with them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            if first["type"] == "extra_forbidden":
                names = ", ".join(type(self).model_fields)
                raise ValueError(f"{first['loc'][0]} is not known here; there are {names}.") from None
            raise ValueError(complaint(first)) from None


class Limits(_Values):
    """How much one client may ask for, and how long it may take.

    Attributes:
        body: Bytes of a request.
        stream: Bytes of a request whose answer is streamed, sentence by sentence.
        head: Bytes of its first line and its headers.
        headers: How many headers it may have.
        words: Words of a sentence.
        total: Words of a request that is not streamed, counted once for each system.
        characters: Characters of a word.
        systems: Systems of a request.
        top: Next-best heads of a word.
        constraints: Constraints on a sentence.
        batch: Words that are parsed together; those of long sentences count for more.
        waiting: Requests that may wait.
        connections: Connections that may be open.
        seconds: How long an answer, or a piece of a stream, may take.
        patience: How long a client may take to send a request or to fetch its answer, in seconds.
        idle: How long a connection may be silent between requests, in seconds.

    Example:
        >>> Limits(words=100).words, Limits().grace
        (100, 40.0)
    """

    model_config = ConfigDict(strict=True)

    body: _Whole = 64 * 1024
    stream: _Whole = 1024 * 1024
    head: _Whole = 64 * 1024
    headers: _Whole = 100
    words: _Whole = 300
    total: _Whole = 1500
    characters: _Whole = 200
    systems: _Whole = 4
    top: _Whole = 20
    constraints: _Whole = 100
    batch: _Whole = 2048
    waiting: _Whole = 256
    connections: _Whole = 256
    seconds: _Seconds = 30.0
    patience: _Seconds = 10.0
    idle: _Seconds = 60.0

    @property
    def grace(self) -> float:
        """How many seconds the answers under way may take when the server ends."""
        return self.seconds + self.patience


def _token(value: str) -> str:
    if not (value.isascii() and value.isprintable() and value and value == value.strip()):
        raise ValueError("it must be letters, digits and signs of ASCII, as a header holds them")
    return value


def _origin(value: str) -> str:
    if not _ORIGIN.fullmatch(value):
        raise ValueError("give scheme, host and port, as https://example.org, or * for any")
    return value


class Settings(_Values):
    """What is served, to whom, and how.

    Attributes:
        runs: Folders that `spigot train` made, or names of models that come with spigot.
        token: What clients must send as `Authorization: Bearer ...`; nobody has to if there is none. It is not printed.
        hosts: The names by which the server may be asked, as `parser.example.org` or `*.example.org`; `*` is any, and
            `localhost` whatever names this machine. By default `localhost` at loopback addresses unless there is a
            token, so that no page elsewhere can reach it through a name of its own, and any name otherwise.
        origins: Web pages elsewhere that may ask, as `https://example.org`; `*` is any.
        device: Where to compute, as torch calls it.
        precision: What words are encoded in: `int16`, `float32` or `bfloat16`.
        threads: How many threads torch may use; as many as it likes by default.
        limits: How much a client may ask for.

    Example:
        >>> Settings.from_environment({"SPIGOT_SERVE_ORIGINS": "https://a.example,https://b.example"}).origins
        ('https://a.example', 'https://b.example')
    """

    runs: tuple[Path, ...] = Field(default_factory=lambda: (default_model(),))
    token: Annotated[str, AfterValidator(_token)] | None = Field(default=None, repr=False)
    hosts: tuple[str, ...] = ()
    origins: tuple[Annotated[str, AfterValidator(_origin)], ...] = ()
    device: str = "cpu"
    precision: Precision = READING
    threads: _Whole | None = None
    limits: Limits = Limits()

    @staticmethod
    def from_environment(environment: Mapping[str, str] = os.environ) -> "Settings":
        """Read `SPIGOT_SERVE_RUNS`, `SPIGOT_SERVE_TOKEN` and so on, one variable for each setting.

        Folders are separated as in `PATH`, hosts and origins by commas; limits are a JSON object.

        Args:
            environment: The variables.

        Raises:
            ValueError: If one of them is not understood, or its name is almost that of a setting.

        Example:
            >>> Settings.from_environment({"SPIGOT_SERVE_LIMITS": '{"body": 1000}'}).limits.body
            1000
            >>> Settings.from_environment({"SPIGOT_SERVE_TOKE": "s3cret"})
            Traceback (most recent call last):
            ...
            ValueError: SPIGOT_SERVE_TOKE is no setting; did you mean SPIGOT_SERVE_TOKEN?
        """
        given: dict[str, Any] = {}
        for variable, value in environment.items():
            name = variable.removeprefix(_PREFIX).lower()
            if name in Settings.model_fields and variable.startswith(_PREFIX):
                given[name] = value
            # Others may begin in the same way: Kubernetes makes some for every service, after its name.
            elif variable.startswith(_PREFIX) and (
                meant := difflib.get_close_matches(name, Settings.model_fields, 1, 0.75)
            ):
                raise ValueError(f"{variable} is no setting; did you mean {_PREFIX}{meant[0].upper()}?")
        for name, separator in (("runs", os.pathsep), ("hosts", ","), ("origins", ",")):
            if name in given:
                given[name] = tuple(part.strip() for part in given[name].split(separator) if part.strip())
        if "limits" in given:
            try:
                given["limits"] = Limits(**json.loads(given["limits"]))
            except (TypeError, json.JSONDecodeError):
                names = ", ".join(Limits.model_fields)
                raise ValueError(f"{_PREFIX}LIMITS must be a JSON object of {names}.") from None
        return Settings(**given)


def complaint(error: ErrorDetails) -> str:
    """What is wrong with a value, in one sentence: where it stands, what it is, and what is expected."""
    place = ".".join(map(str, error["loc"]))
    if error["type"] == "missing":
        return f"{place} is missing."
    reason = error["msg"].removeprefix("Value error, ").removeprefix("Input should ").rstrip(".")
    reason = f"it should {reason}" if error["msg"].startswith("Input should ") else f"{reason[:1].lower()}{reason[1:]}"
    found = "refused" if place == "token" else brief(error["input"])  # a secret stands in no message
    return f"{place} is {found}; {reason}."


def brief(value: object) -> str:
    """A value as it stands in a message, whatever its size."""
    try:
        text = json.dumps(value, default=repr) if not isinstance(value, str) else repr(value[:80])
    except (ValueError, RecursionError):  # a number with more digits than Python writes, or a list in itself
        text = f"a huge {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."
