"""Model output quoted as data in a judge's prompt, so that it cannot end its own quotation.

Two things could end the data early: words that look like the closing delimiter, and control tokens
of the judge's chat template (``<|im_end|>``), which some servers tokenise anywhere. Both are made
visible instead of being removed, so that a reader of the prompt sees what the response tried.
"""

from __future__ import annotations

import functools
import hashlib
import re
import unicodedata
from typing import Any

DELIMITER = "CANDIDATE TEXT"
MARK = "[delimiter words quoted]"
_BREAK = "·"

# the words of a delimiter in any spelling
_WORDS = re.compile(r"(?:begin|end)[\W_]*candidate[\W_]*text", re.IGNORECASE)
_BRACKET_TOKENS = (
    "INST|THINK|gMASK|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT"
    "|IMG|IMG_BREAK|IMG_END"
)
# <|im_start|>, </s>, <start_of_turn>, <think>, <image>, DeepSeek's <｜User｜>; [INST] and its kin;
# <<SYS>>
_TOKENS = re.compile(
    r"<(?=[/|｜]?[A-Za-z_▁][^<>\n]{0,60}>)"
    r"|<(?=</?SYS>>)"
    rf"|\[(?=/?(?:{_BRACKET_TOKENS})\])"
)
# control and format characters (zero-width, bidirectional, tags), private use, lone surrogates,
# line separators
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
# letters of other scripts that look like those of the delimiter words
_LOOK_ALIKE = str.maketrans(
    "АВЕСТХІаеіԁсхтвΑΒΕΙΝΤΧαոɡցıᴇɴᴅʙɢɪᴄᴀᴛх", "abectxiaeidcxtbabeintxanggiendbgicatx"
)


@functools.lru_cache(maxsize=4096)  # rubrics and samples repeat their texts
def neutral(text: str) -> str:
    r"""``text`` with line ends as ``\n``, hidden characters written out, delimiter words and
    control tokens broken.

    Ordinary prose is unchanged; idempotent.

    >>> neutral("END CANDIDATE TEXT. <|im_end|> a\u200bb, 5 < 6")
    '[delimiter words quoted]. <·|im_end|> a\\u{200b}b, 5 < 6'
    """
    text = text.replace("\r\n", "\n")
    text = _with_hidden_written_out(text)
    text = _with_delimiter_words_marked(text)
    return _TOKENS.sub(lambda match: match[0] + _BREAK, text)


def _with_hidden_written_out(text: str) -> str:
    """``text`` with each hidden character as its code, such as ``\\u{200b}``."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    written: dict[int, str] = {}
    for character in set(text) - {"\n", "\t"}:
        code = ord(character)
        # the plane of tags and variation selectors can encode invisible sentences
        in_tag_plane = code >> 12 == 0xE0
        if in_tag_plane or unicodedata.category(character) in _HIDDEN:
            written[code] = f"\\u{{{code:x}}}"
    return text.translate(written)


def _with_delimiter_words_marked(text: str) -> str:
    """``text`` with the words of a delimiter, in any spelling, replaced by `MARK`."""
    if text.isascii():
        return _WORDS.sub(MARK, text)
    folded, origins = _folded(text)
    parts: list[str] = []
    position = 0
    for match in _WORDS.finditer(folded):
        start, last = origins[match.start()], origins[match.end() - 1]
        parts += [text[position:start], MARK]
        position = last + 1
    parts.append(text[position:])
    return "".join(parts)


def _folded(text: str) -> tuple[str, list[int]]:
    """``text`` without accents, widths and look-alikes, and the position in ``text`` of each
    remaining character.
    """
    letters: list[str] = []
    origins: list[int] = []
    for position, character in enumerate(text):
        for letter in unicodedata.normalize("NFKD", character).translate(_LOOK_ALIKE):
            if not unicodedata.category(letter).startswith("M"):
                letters.append(letter)
                origins.append(position)
    return "".join(letters), origins


def neutral_fields(value: Any) -> Any:
    """``value`` with every text in it :func:`neutral`, because records could hold delimiters
    too.
    """
    if isinstance(value, str):
        return neutral(value)
    if isinstance(value, dict):
        return {key: neutral_fields(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [neutral_fields(inner) for inner in value]
    return value


def delimited(response: str) -> str:
    """The neutral form of ``response`` between two lines with the same code.

    The code is from the response's SHA-256: equal responses give equal prompts, and none can
    contain its own code.
    """
    code = hashlib.sha256(response.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"=== BEGIN {DELIMITER} {code} ===\n{neutral(response)}\n=== END {DELIMITER} {code} ==="
