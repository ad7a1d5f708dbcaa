"""Where to listen, and whether an address is one that only this machine can reach."""

import errno
import ipaddress
import socket


def is_loopback(host: str) -> bool:
    """Whether an address is one that only this machine can reach.

    Example:
        >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
        (True, True, False)
    """
    try:
        return ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return False


def names_loopback(host: str) -> bool:
    """Whether a Host header names this machine, with any port: it may be forwarded from another one.

    Example:
        >>> names_loopback("localhost:8000"), names_loopback("localhost.example:8000")
        (True, False)
    """
    name = host.rsplit(":", 1)[0] if not host.endswith("]") and ":" in host else host
    name = name.strip().lower().removeprefix("[").removesuffix("]")
    return name == "localhost" or name.endswith(".localhost") or is_loopback(name)


def listening(host: str, port: int) -> socket.socket:
    """A socket at an address, which nobody else has.

    Args:
        host: The address, or a name of it.
        port: The port; 0 takes any that is free.

    Raises:
        OSError: If the port is taken, or the address is none of this machine.
        ValueError: If the address is none at all.

    Example:
        >>> with listening("127.0.0.1", 0) as found:
        ...     found.getsockname()[0]
        '127.0.0.1'
    """
    if not 0 <= port <= 65535:
        raise ValueError(f"port is {port}; it must be from 1 to 65535, or 0 for any free one.")
    try:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as error:
        raise ValueError(f"host is {host!r}, which is no address ({error.strerror}); use 127.0.0.1.") from None
    made = socket.socket(family)
    try:
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it; without it an answer of two parts waits 40 ms for the client to confirm the first.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.bind(where)
        made.listen(2048)  # from now on the port is taken; those who come before the start wait
    except OSError as error:
        made.close()
        raise _unusable(error, host, port) from None
    made.set_inheritable(True)
    return made


def _unusable(error: OSError, host: str, port: int) -> OSError:
    if error.errno == errno.EADDRINUSE:
        return OSError(f"port {port} is taken; choose another with --port, or 0 for any free one.")
    if error.errno == errno.EACCES:
        return OSError(f"port {port} needs more rights than this program has; choose one above 1023 with --port.")
    return OSError(f"cannot listen at {host} port {port}: {error.strerror or error}.")
