"""medtasks: four medical vision-language benchmarks as task plug-ins for lmms-eval."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
