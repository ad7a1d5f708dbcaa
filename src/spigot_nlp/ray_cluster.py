"""Joining a Ray cluster, or starting one on this machine: what everything that runs on one does first."""

import logging
import os
import re
from collections.abc import Mapping
from types import ModuleType

_OWN_STORE = 10**8  # bytes for what tasks hand on; ours hand on files
_ADDRESS = r"ray://[^\s/]+|[^\s/:]+:\d+|\[[^\s/]+\]:\d+|auto"


def join_cluster(on: str) -> ModuleType:
    """Join a Ray cluster, unless this process has joined one already.

    Args:
        on: `"ray"` for the one that runs on this machine, which is started if there is none; or the address of one.

    Returns:
        Ray.

    Raises:
        ModuleNotFoundError: If Ray is not installed; it says how to.
        ValueError: If that is no address.
        ConnectionError: If there is no cluster, or it cannot be started.

    Example:
        >>> join_cluster("slurm")
        Traceback (most recent call last):
        ValueError: on is 'slurm'; give 'ray' for this machine, or the address of a Ray cluster: ray://HOST:10001.
    """
    if on != "ray" and not re.fullmatch(_ADDRESS, on):
        raise ValueError(
            f"on is {on!r}; give 'ray' for this machine, or the address of a Ray cluster: ray://HOST:10001."
        )
    ray = ray_module(on)
    if not ray.is_initialized():
        _connect(ray, on)
    return ray


def ray_module(on: str = "ray") -> ModuleType:
    """Ray, loaded when it is first needed.

    Args:
        on: What it is needed for: `ray://` addresses need its client.

    Raises:
        ModuleNotFoundError: If it is not installed; it says how to.

    Example:
        >>> ray_module().__name__  # doctest: +SKIP
        'ray'
    """
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # who is given no GPU by Ray may still see one
    try:
        import ray  # pyright: ignore[reportMissingImports]  # an extra
        import ray.util.scheduling_strategies  # pyright: ignore[reportMissingImports]  # the same

        if on.startswith("ray://"):
            import grpc  # noqa: F401 # pyright: ignore[reportMissingImports]  # what Ray's client speaks
    except ModuleNotFoundError as error:
        if error.name not in ("ray", "grpc"):
            raise
        raise ModuleNotFoundError("--on needs Ray; install it with: pip install 'torch-spigot[ray]'") from None
    return ray


def cores(ray: ModuleType) -> Mapping[str, int]:
    """How many cores each machine of the cluster has, by the name that Ray has for it.

    Example:
        >>> from types import SimpleNamespace
        >>> node = {"NodeID": "a", "Alive": True, "Resources": {"CPU": 2.0}}
        >>> cores(SimpleNamespace(nodes=lambda: [node, {**node, "NodeID": "b", "Alive": False}]))
        {'a': 2}
    """
    return {node["NodeID"]: int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]}


def last_line(error: Exception) -> str:
    """What an error of Ray's says, without where it happened.

    Example:
        >>> last_line(RuntimeError("Traceback ...\\n  in x\\nNo room"))
        'No room.'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{(lines or [type(error).__name__])[-1].rstrip('.')}."


def _connect(ray: ModuleType, on: str) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        ray.init("auto" if on == "ray" else on, **quiet)
        return
    except Exception as error:  # Ray raises many kinds, bare ones among them
        if on != "ray":
            # Ray's client says of a cluster that refuses it no more than that time ran out.
            hint = " If it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN." if "://" in on else ""
            raise ConnectionError(f"there is no Ray cluster to join at {on}: {last_line(error)}{hint}") from None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray would have its workers yield to everything else on the machine (a niceness of 15), until on a busy one they
    # hardly run at all; they do what the user asked for, so they get the same share as this process.
    os.environ.setdefault("RAY_worker_niceness", "0")
    try:
        ray.init("local", include_dashboard=False, object_store_memory=_OWN_STORE, **quiet)
    except Exception as error:
        raise ConnectionError(f"Ray cannot be started on this machine: {last_line(error)}") from None
