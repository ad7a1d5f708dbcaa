"""Joining a Ray cluster, or starting one on this machine."""

import logging
import os
import re
from collections.abc import Mapping
from types import ModuleType

_OWN_STORE = 10**8  # bytes for what tasks hand on; ours hand on files
_ADDRESS = r"ray://[^\s/]+|[^\s/:]+:\d+|\[[^\s/]+\]:\d+|auto"


def join_cluster(address: str) -> ModuleType:
    """Join a Ray cluster, unless this process has joined one already.

    Args:
        address: `auto` for the one that runs on this machine, which is started if there is none; or that of another.

    Returns:
        Ray.

    Raises:
        ModuleNotFoundError: If Ray is not installed; it says how to.
        ValueError: If that is no address.
        ConnectionError: If there is no cluster, or it cannot be started.

    Example:
        >>> join_cluster("slurm")
        Traceback (most recent call last):
        ValueError: 'slurm' is no address of a Ray cluster; give auto for this machine, or ray://HOST:10001.
    """
    if not re.fullmatch(_ADDRESS, address):
        raise ValueError(
            f"{address!r} is no address of a Ray cluster; give auto for this machine, or ray://HOST:10001."
        )
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # who is given no GPU by Ray may still see one
    try:
        import ray  # pyright: ignore[reportMissingImports]  # an extra

        if address.startswith("ray://"):
            import grpc  # noqa: F401 # pyright: ignore[reportMissingImports]  # what Ray's client speaks
    except ModuleNotFoundError as error:
        if error.name not in ("ray", "grpc"):
            raise
        raise ModuleNotFoundError("a cluster needs Ray; install it with: pip install 'torch-spigot[ray]'") from None
    if not ray.is_initialized():
        _connect(ray, address)
    return ray


def cores(ray: ModuleType) -> Mapping[str, int]:
    """How many cores each machine of the cluster has, by the name that Ray has for it."""
    return {node["NodeID"]: int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]}


def last_line(error: Exception) -> str:
    """What an error of Ray's says, without where it happened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{(lines or [type(error).__name__])[-1].rstrip('.')}."


def _connect(ray: ModuleType, address: str) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        ray.init(address, **quiet)
        return
    except Exception as error:  # Ray raises many kinds, bare ones among them
        if address != "auto":
            # Ray's client says of a cluster that refuses it no more than that time ran out.
            hint = " If it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN." if "://" in address else ""
            raise ConnectionError(f"there is no Ray cluster to join at {address}: {last_line(error)}{hint}") from None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray would have its workers yield to everything else on the machine (a niceness of 15), until on a busy one they
    # hardly run at all; they do what the user asked for, so they get the same share as this process.
    os.environ.setdefault("RAY_worker_niceness", "0")
    try:
        ray.init("local", include_dashboard=False, object_store_memory=_OWN_STORE, **quiet)
    except Exception as error:
        raise ConnectionError(f"Ray cannot be started on this machine: {last_line(error)}") from None
