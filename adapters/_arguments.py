"""Reading model arguments and generation settings, which arrive as whatever the harness made of a string."""

from __future__ import annotations

from medtasks.errors import UsageError

__all__ = ["read_flag", "read_integer", "read_limit", "read_number", "read_text"]


def read_text(value: object) -> str | None:
    """``value`` as text, None where it is None or empty (the harness turns ``revision=12`` into a number)."""
    text = None if value is None else str(value)
    return text or None


def read_integer(name: str, value: object, *, least: int) -> int:
    """``value`` as an integer of at least ``least``; raises :class:`UsageError` naming ``name``."""
    number = read_number(name, value, least=least, kind="an integer")
    if number != int(number):
        raise UsageError(f"{name} is {value!r}, expected an integer of at least {least}.")
    return int(number)


def read_limit(name: str, value: object) -> int | None:
    """``value`` as an integer of at least 1; None, where none is given, sets no limit."""
    return None if value is None else read_integer(name, value, least=1)


def read_number(name: str, value: object, *, least: float, most: float = float("inf"), kind: str = "a number") -> float:
    """``value`` as a finite number in ``[least, most]``; raises :class:`UsageError` naming ``name``."""
    expected = f"{kind} of at least {least}" if most == float("inf") else f"{kind} from {least} to {most}"
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise UsageError(f"{name} is {value!r}, expected {expected}.")
    try:
        number = float(value)
    except ValueError:
        raise UsageError(f"{name} is {value!r}, expected {expected}.") from None
    if not least <= number <= most or number == float("inf"):
        raise UsageError(f"{name} is {value!r}, expected {expected}.")
    return number


def read_flag(name: str, value: object) -> bool:
    """``value`` as True or False; raises :class:`UsageError` naming ``name``."""
    if not isinstance(value, bool):
        raise UsageError(f"{name} is {value!r}, expected true or false.")
    return value
