"""`spigot serve`: a page to type sentences into, and its JSON interface."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import cyclopts

from spigot_nlp.cli.console import Device, Flag, Precision, counted, progress, say, torch_device
from spigot_nlp.threads import cores, use_threads

if TYPE_CHECKING:
    from spigot_nlp.serve import Served


def serve(
    *runs: Path,
    port: int = 8000,
    host: str = "127.0.0.1",
    workers: int = 1,
    threads: int | None = None,
    device: Device | None = None,
    precision: Precision | None = None,
    token: str | None = None,
    origin: Annotated[tuple[str, ...], cyclopts.Parameter(negative="", show_default=False)] = (),
    certificate: Path | None = None,
    key: Path | None = None,
    open_page: Annotated[bool, cyclopts.Parameter(name="--open", negative="")] = False,
    one_by_one: Flag = False,
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
    workers
        How many processes answer, each with the systems in its own memory.
    threads
        How many threads torch may use in each process; by default the cores are divided between them, up to four each.
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
    one_by_one
        Parse each request by itself, to see what batching gains.
    """
    from spigot_nlp.serve import Certificate, Server, Settings, open_systems
    from spigot_nlp.serve.addresses import is_loopback, listening
    from spigot_nlp.serve.server import address, serve_by_workers

    if workers < 1:
        raise ValueError(f"workers is {workers}; it must be at least 1.")
    if threads is not None and threads < 1:
        raise ValueError(f"threads is {threads}; it must be at least 1.")
    if key is not None and certificate is None:
        raise ValueError(f"{key} is the key of no certificate; give --certificate, too.")
    given = Settings.from_environment()
    settings = replace(
        given,
        runs=runs or given.runs,
        token=given.token if token is None else token,
        origins=origin or given.origins,
        device=str(torch_device(device or given.device)),
        precision=precision or given.precision,
        threads=threads or given.threads or max(1, min(4, cores() // workers)),
        together=given.together and not one_by_one,
    )
    encrypted = None if certificate is None else Certificate(certificate, key)
    with use_threads(settings.threads), _ended_politely():
        loading = open_systems(settings.runs, settings.device, settings.precision)
        systems = list(progress(loading, "loading", total=len(settings.runs)))
        if workers == 1:
            with Server(
                systems,
                host,
                port,
                settings.limits,
                together=settings.together,
                token=settings.token,
                origins=settings.origins,
                certificate=encrypted,
            ) as server:
                server.api.systems()  # chooses the examples, before anybody waits for them
                _announce(server.address, systems, host, public=not server.is_local and settings.token is None)
                _open(server.address, open_page)
                server.serve_forever()
            return
        with listening(host, port) as listener:
            where = address(listener, encrypted=encrypted is not None)
            is_local = is_loopback(listener.getsockname()[0])
            settings = replace(settings, local=is_local and settings.token is None)
            _announce(where, systems, host, public=not is_local and settings.token is None)
            _open(where, open_page)
            systems.clear()  # each process has its own
            serve_by_workers(workers, settings, listener, encrypted)
            raise KeyboardInterrupt


def _announce(address: str, systems: "Sequence[Served]", host: str, *, public: bool) -> None:
    print(address, flush=True)
    if public:
        say(
            f"Warning: whoever can reach {host} can use this page; there is no password. "
            "Set a token in SPIGOT_SERVE_TOKEN to have one."
        )
    for system in systems:
        if not system.about.tagger:
            say(f"{system.name} has no tagger: it was trained with tags from files, and reads text without.")
    say(f"Serving {counted(len(systems), 'system')}; Ctrl-C ends it.")


def _open(address: str, wanted: bool) -> None:
    if wanted:
        import webbrowser

        webbrowser.open(address)


@contextmanager
def _ended_politely() -> Iterator[None]:
    """Ctrl-C and a request to terminate both end the block, and neither is a failure."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    main = threading.current_thread() is threading.main_thread()  # no other thread may handle signals
    before = signal.signal(signal.SIGTERM, interrupt) if main else None
    try:
        yield
    except KeyboardInterrupt:
        say("Stopped.")
    finally:
        if main:
            signal.signal(signal.SIGTERM, before)
