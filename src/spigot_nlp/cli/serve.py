"""`spigot serve`: a page to type sentences into, and its JSON interface."""

import signal
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import cyclopts

from spigot_nlp.bundled import run_folder
from spigot_nlp.cli.console import Device, Precision, counted, progress, say, torch_device
from spigot_nlp.threads import use_threads

if TYPE_CHECKING:
    from spigot_nlp.serve import Server


def serve(
    *runs: Path,
    port: int = 8000,
    host: str = "127.0.0.1",
    threads: int | None = None,
    device: Device | None = None,
    precision: Precision | None = None,
    token: str | None = None,
    origin: Annotated[tuple[str, ...], cyclopts.Parameter(negative="", show_default=False)] = (),
    certificate: Path | None = None,
    key: Path | None = None,
    open_page: Annotated[bool, cyclopts.Parameter(name="--open", negative="")] = False,
) -> None:
    """Serve a page on which sentences are parsed as they are typed, and arcs can be forced and forbidden.

    Its address is printed on standard output. The same answers come as JSON from POST /api/parse, and requests that
    wait together are parsed together. Only this machine can reach it unless --host says otherwise. Ctrl-C ends it, when
    those who wait have their answers. What no option says is taken from the environment: SPIGOT_SERVE_TOKEN and others.

    Parameters
    ----------
    runs
        Folders that spigot train made, or names of models that come with spigot; two of them can be compared side by
        side. The English model if there are none.
    port
        Where to listen; 0 takes any free port.
    host
        The address to listen at; 0.0.0.0 lets everybody in the network in.
    threads
        How many threads torch may use; by default as many as there are cores, up to four.
    token
        What clients must send as "Authorization: Bearer TOKEN". Everybody on this machine sees options, so the variable
        SPIGOT_SERVE_TOKEN is the better place.
    origin
        A web page elsewhere that may ask, as https://example.org; give it again for another, or * for any.
    certificate
        Encrypt connections (https) with this certificate, a file in PEM.
    key
        The private key of the certificate, if it is in another file.
    open_page
        Open the page in a browser.
    """
    for run in runs or ():
        run_folder(run)  # refused before torch is loaded
    from spigot_nlp.serve import Server, Settings, open_systems

    given = Settings.from_environment()
    asked = {"runs": runs, "token": token, "origins": origin, "precision": precision, "threads": threads}
    chosen = {name: value for name, value in asked.items() if value not in (None, ())}
    chosen["device"] = str(torch_device(device or given.device))
    settings = Settings(**{**dict(given), **chosen})
    with use_threads(settings.threads), _ended_politely():
        loading = open_systems(settings.runs, settings.device, settings.precision)
        systems = list(progress(loading, "loading", total=len(settings.runs)))
        with Server(systems, host, port, settings, certificate=certificate, key=key) as server:
            _announce(server, public=not server.is_local and settings.token is None)
            if open_page:
                webbrowser.open(server.address)
            server.serve_forever()


def _announce(server: "Server", *, public: bool) -> None:
    systems = server.api.systems.systems  # chooses the examples, before anybody waits for them
    print(server.address, flush=True)
    if public:
        say(
            f"Warning: whoever can reach {server.host} can use this page; there is no password. "
            "Set a token in SPIGOT_SERVE_TOKEN to have one."
        )
    for system in systems:
        if not system.tagger:
            say(f"{system.name} has no tagger: it was trained with tags from files, and reads text without.")
    say(f"Serving {counted(len(systems), 'system')}; Ctrl-C ends it.")


@contextmanager
def _ended_politely() -> Iterator[None]:
    """Ctrl-C and a request to terminate both end the block, and neither is a failure."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    main = threading.current_thread() is threading.main_thread()  # no other thread may handle signals
    before = signal.signal(signal.SIGTERM, interrupt) if main else None
    try:
        with suppress(KeyboardInterrupt):
            yield
        say("Stopped.")
    finally:
        if main:
            signal.signal(signal.SIGTERM, before)
