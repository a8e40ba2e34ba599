"""The Ray cluster: connecting to it or starting it, and what it has."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Any

from medtasks.core.errors import UsageError, first_line
from medtasks.core.extras import needs

# both make Ray print warnings
_SWITCHED_OFF = ("RAY_USAGE_STATS_ENABLED", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO")


def started_ray(address: str | None) -> Any:
    """Ray, connected to the cluster at ``address``, or else started on this machine."""
    for name in _SWITCHED_OFF:
        os.environ.setdefault(name, "0")
    with needs("ray", "medtasks_ray"):
        import ray
    own_cluster = {"include_dashboard": False} if address is None else {}
    try:
        _try_to_connect(address or "")
        ray.init(
            address or "local",
            log_to_driver=False,
            logging_level="ERROR",
            ignore_reinit_error=True,
            **own_cluster,
        )
    except (OSError, ValueError) as error:
        raise UsageError(
            f"model_args: no Ray cluster answers at address={address} ({first_line(error)}); "
            "start one with `ray start --head`, with RAY_AUTH_MODE and RAY_AUTH_TOKEN as here, or "
            "leave address out."
        ) from error
    return ray


def _try_to_connect(address: str) -> None:
    """Raise :class:`OSError` if nothing answers at ``host:port``: Ray would try for ten minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=10).close()


def described_nodes(ray: Any) -> list[str]:
    """The cores and GPUs of each node that is alive, sorted."""
    nodes: list[str] = []
    for node in ray.nodes():
        if node["Alive"]:
            resources = node["Resources"]
            nodes.append(f"{resources.get('CPU', 0):g} CPU, {resources.get('GPU', 0):g} GPU")
    return sorted(nodes)


def refuse_too_many_replicas(
    replicas: int, gpus: float, cpus: float, resources: Mapping[str, float]
) -> None:
    """Refuse more replicas than fit on this machine."""
    fitting = replicas
    if gpus:
        fitting = min(fitting, int(resources.get("GPU", 0) // gpus))
    if cpus:
        fitting = min(fitting, int(resources.get("CPU", 0) // cpus))
    if fitting < replicas:
        raise UsageError(
            f"model_args: {replicas} replicas of {gpus:g} GPUs and {cpus:g} "
            f"cores do not fit on this machine, which has {resources.get('GPU', 0):g} and "
            f"{resources.get('CPU', 0):g}; lower replicas, gpus or cpus, or give the address of a "
            "cluster."
        )
