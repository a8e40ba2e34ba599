"""The base of every record in ``board.json``."""

from __future__ import annotations

from pydantic import ConfigDict

from medtasks.core.schema import Frozen


class BoardRecord(Frozen):
    """An immutable record that refuses unknown fields, and numbers that JSON cannot express."""

    model_config = ConfigDict(allow_inf_nan=False)
