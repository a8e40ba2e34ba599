"""Uncertainty of corpus scores when samples come in clusters (images, patients)."""

from __future__ import annotations

from medtasks.stats.bootstrap import Interval, cluster_bootstrap, clustered_standard_error

__all__ = ["Interval", "cluster_bootstrap", "clustered_standard_error"]
