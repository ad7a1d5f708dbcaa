"""How a server is set up, in Python or by the environment of its process."""

import difflib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, cast, get_args

from spigot_nlp.bundled import default_model
from spigot_nlp.encoders import READING, Precision
from spigot_nlp.serve.query import Limits

_ORIGIN = re.compile(r"\*|https?://[^\s/?#@*]+")
_PREFIX = "SPIGOT_SERVE_"


@dataclass(frozen=True)
class Settings:
    """What is served, to whom, and how.

    Attributes:
        runs: Folders that `spigot train` made, or names of models that come with spigot.
        token: What clients must send as `Authorization: Bearer ...`; nobody has to if there is none. It is not printed.
        origins: Web pages elsewhere that may ask, as `https://example.org`; `*` is any.
        device: Where to compute, as torch calls it.
        precision: What words are encoded in: `int16`, `float32` or `bfloat16`.
        threads: How many threads torch may use; as many as it likes by default.
        together: Whether requests that wait together are parsed together.
        local: Whether only requests are answered that name this machine, so that no page elsewhere can reach it through
            a name of its own. By default that is so at loopback addresses, unless there is a token.
        metrics: A folder that the processes of a server share, where each keeps its counts.
        limits: How much a client may ask for.

    Example:
        >>> Settings(runs=(Path("runs/first"),), token="s3cret").environment()
        {'SPIGOT_SERVE_RUNS': 'runs/first', 'SPIGOT_SERVE_TOKEN': 's3cret'}
        >>> Settings.from_environment({"SPIGOT_SERVE_ORIGINS": "https://a.example,https://b.example"}).origins
        ('https://a.example', 'https://b.example')
    """

    runs: tuple[Path, ...] = (default_model(),)
    token: str | None = field(default=None, repr=False)
    origins: tuple[str, ...] = ()
    device: str = "cpu"
    precision: Precision = READING
    threads: int | None = None
    together: bool = True
    local: bool | None = None
    metrics: Path | None = None
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if self.token is not None and not (self.token.isascii() and self.token.isprintable() and self.token.strip()):
            raise ValueError(
                "the token is empty or has characters that no header can hold; use letters and digits, or leave it out."
            )
        if self.token is not None and self.token != self.token.strip():
            raise ValueError("the token begins or ends with a space, which headers lose; leave it out.")
        for origin in self.origins:
            if not _ORIGIN.fullmatch(origin):
                raise ValueError(
                    f"the origin {origin!r} is none; give scheme, host and port, as https://example.org, or * for any."
                )
        if self.precision not in get_args(Precision):
            raise ValueError(f"precision is {self.precision!r}; it must be {' or '.join(get_args(Precision))}.")
        if self.threads is not None and self.threads < 1:
            raise ValueError(f"threads is {self.threads}; it must be at least 1.")

    @staticmethod
    def from_environment(environment: Mapping[str, str] = os.environ) -> "Settings":
        """Read `SPIGOT_SERVE_RUNS`, `SPIGOT_SERVE_TOKEN` and so on, one variable for each setting.

        Folders are separated as in `PATH`, origins by commas; limits are a JSON object.

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
        given = {
            name.removeprefix(_PREFIX).lower(): value for name, value in environment.items() if name.startswith(_PREFIX)
        }
        names = [each.name for each in fields(Settings)]
        for name in given:
            # Others may begin in the same way: Kubernetes makes some for every service, after its name.
            if name not in names and (meant := difflib.get_close_matches(name, names, 1, 0.75)):
                meant = f"{_PREFIX}{meant[0].upper()}"
                raise ValueError(f"{_PREFIX}{name.upper()} is no setting; did you mean {meant}?")
        return Settings(
            runs=tuple(Path(run) for run in given.get("runs", str(default_model())).split(os.pathsep) if run),
            token=given.get("token"),
            origins=tuple(origin.strip() for origin in given.get("origins", "").split(",") if origin.strip()),
            device=given.get("device", "cpu"),
            precision=cast(Precision, given.get("precision", READING)),  # which is checked with the rest
            threads=_whole("threads", given["threads"]) if "threads" in given else None,
            together=_yes("together", given["together"]) if "together" in given else True,
            local=_yes("local", given["local"]) if "local" in given else None,
            metrics=Path(given["metrics"]) if "metrics" in given else None,
            limits=_limits(given["limits"]) if "limits" in given else Limits(),
        )

    def environment(self) -> dict[str, str]:
        """The variables from which another process reads the same."""
        usual, found = Settings(), {}
        for each in fields(self):
            value = getattr(self, each.name)
            if value == getattr(usual, each.name):
                continue
            if isinstance(value, Limits):
                said = json.dumps(asdict(value))
            elif isinstance(value, tuple):
                said = (os.pathsep if each.name == "runs" else ",").join(map(str, value))
            else:
                said = str(int(value)) if isinstance(value, bool) else str(value)
            found[f"{_PREFIX}{each.name.upper()}"] = said
        return found


def _whole(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) < 10):
        raise ValueError(f"{_PREFIX}{name.upper()} is {value!r}; it must be a whole number.")
    return int(value)


def _yes(name: str, value: str) -> bool:
    if value not in ("0", "1"):
        raise ValueError(f"{_PREFIX}{name.upper()} is {value!r}; it must be 1 for yes or 0 for no.")
    return value == "1"


def _limits(value: str) -> Limits:
    try:
        given: dict[str, Any] = json.loads(value)
    except ValueError:
        given = {"": None}
    usual = asdict(Limits())
    if not isinstance(given, dict) or not set(given) <= set(usual):
        raise ValueError(f"{_PREFIX}LIMITS is {value[:60]!r}; it must be a JSON object of {', '.join(usual)}.")
    for name, number in given.items():
        kinds = (int,) if isinstance(usual[name], int) else (int, float)
        if isinstance(number, bool) or not isinstance(number, kinds) or not 0 < number < 1e12:
            whole = "whole " if kinds == (int,) else ""
            raise ValueError(f"the limit {name} is {str(number)[:40]!r}; it must be a {whole}number above 0.")
    return Limits(**given)
