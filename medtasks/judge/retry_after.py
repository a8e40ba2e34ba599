"""How long an endpoint asks to wait before the next attempt, by the headers of its reply."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]+)?")


def seconds_to_wait(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """The seconds that a reply asks to wait, or None.

    They are in ``retry-after-ms``, or in ``Retry-After``: as seconds, or as a date, which is
    compared with the server's own ``Date``, so that no clock has to be right.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = headers.get("Retry-After", "")
    seconds = _number(asked)
    if seconds is not None:
        return seconds
    until = _date(asked)
    if until is None:
        return None
    sent = _date(headers.get("Date", "")) or now or datetime.now(timezone.utc)
    wait = (until - sent).total_seconds()
    return wait if wait > 0 else None  # a date that has passed says nothing


def _number(text: str) -> float | None:
    """The decimal number that the text is, or None."""
    return float(text) if _NUMBER.fullmatch(text) else None


def _date(text: str) -> datetime | None:
    """The date in the format of HTTP that the text is, with its time zone; None for other texts."""
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=timezone.utc)
