"""The task files: one YAML per subtask, one per group, shared parts in ``_*.yaml``."""
