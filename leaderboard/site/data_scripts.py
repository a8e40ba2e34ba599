"""Values as JavaScript files, because pages opened without a server cannot fetch data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from medtasks.core.text import visible

_MARKUP = re.compile("[<>&]")


def data_script(key: str, make: Callable[[], Any]) -> str:
    """A script that stores the value that ``make`` returns under ``key``.

    The value is a JSON text in a string literal, both in ASCII: no text in it can end the literal,
    and no key (such as ``__proto__``) is special to JavaScript.
    """
    value = _with_visible_texts(make())
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    name = _script_literal(key)
    literal = _script_literal(text)
    return f"(window.medtasks??={{}})[{name}]=JSON.parse({literal});\n"


def _with_visible_texts(value: Any) -> Any:
    """A JSON value whose texts have nothing that is invisible on a page."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {visible(key): _with_visible_texts(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_visible_texts(inner) for inner in value]
    return value


def _script_literal(text: str) -> str:
    """A string literal of JavaScript without characters that are markup in HTML."""
    return _MARKUP.sub(_unicode_escape, json.dumps(text))


def _unicode_escape(markup: re.Match[str]) -> str:
    return f"\\u{ord(markup[0]):04x}"
