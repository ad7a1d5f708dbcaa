"""`spigot serve`: a local page to type sentences into, and its JSON interface."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import cyclopts

from spigot.bundled import DEFAULT
from spigot.cli.console import Device, Flag, Precision, counted, progress, say, torch_device, use_threads


def serve(
    *runs: Path,
    port: int = 8000,
    host: str = "127.0.0.1",
    threads: int | None = None,
    device: Device = "cpu",
    precision: Precision = "float32",
    open_page: Annotated[bool, cyclopts.Parameter(name="--open", negative="")] = False,
    one_by_one: Flag = False,
) -> None:
    """Serve a page on which sentences are parsed as they are typed, and arcs can be forced and forbidden.

    Its address is printed on standard output. The same answers come as JSON from POST /api/parse, and requests that
    wait together are parsed together. Only this machine can reach it unless --host says otherwise. Ctrl-C ends it.

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
        How many threads torch may use; by default one for each core, up to four.
    open_page
        Open the page in a browser.
    one_by_one
        Parse each request by itself, to see what batching gains.
    """
    from spigot.serve import Server, open_systems

    runs = runs or (Path(DEFAULT),)
    with use_threads(threads), _ended_politely():
        systems = list(progress(open_systems(runs, torch_device(device), precision), "loading", total=len(runs)))
        with Server(systems, host, port, together=not one_by_one) as server:
            server.api.systems()  # chooses the examples, before anybody waits for them
            print(server.address, flush=True)
            if not server.is_local:
                say(f"Warning: whoever can reach {host} can use this page; there is no password.")
            for system in systems:
                if not system.about.tagger:
                    say(f"{system.name} has no tagger: it was trained with tags from files, and reads text without.")
            say(f"Serving {counted(len(systems), 'system')}; Ctrl-C ends it.")
            if open_page:
                import webbrowser

                webbrowser.open(server.address)
            server.serve_forever(poll_interval=0.2)


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
