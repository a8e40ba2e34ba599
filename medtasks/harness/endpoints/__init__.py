"""Requests to the endpoints of closed models, each sent by itself and kept when it is answered.

lmms-eval's ``openai``, ``litellm``, ``gemini`` and ``claude`` build the requests; the vendors' own
packages send them. What these back-ends make of a response is not used: they return errors, safety
blocks and thoughts as texts, and some confuse one request with another. Instead, the reply is read
from the vendor's response (:mod:`.responses`), and failed attempts are repeated under one policy
(:mod:`.exchange`).
"""

from __future__ import annotations

from .async_client import begin_noting, noted_reply, renew_connections, responses_noted
from .clients import is_endpoint, leaves_out_temperature
from .sending import ask_endpoint

__all__ = [
    "ask_endpoint",
    "begin_noting",
    "is_endpoint",
    "leaves_out_temperature",
    "noted_reply",
    "renew_connections",
    "responses_noted",
]
