"""Model output quoted in a judge's prompt as data, so that it cannot close its own delimiters.

Two things could end the data early: words that look like the closing delimiter, and control tokens of the judge's
chat template (``<|im_end|>``), which some servers tokenise anywhere. Both are made visible instead of being removed, so
that a reader of the prompt sees what the response tried.
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
# <|im_start|>, </s>, <start_of_turn>, <think>, <image>, DeepSeek's <｜User｜>; [INST] and its kin; <<SYS>>
_TOKENS = re.compile(
    r"<(?=[/|｜]?[A-Za-z_▁][^<>\n]{0,60}>)"
    r"|<(?=</?SYS>>)"
    r"|\[(?=/?(?:INST|THINK|gMASK|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|IMG|IMG_BREAK|IMG_END)\])"
)
# control and format characters (zero-width, bidirectional, tags), private use, lone surrogates, line separators
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
# letters of other scripts that look like those of the delimiter words
_LOOK_ALIKE = str.maketrans("АВЕСТХІаеіԁсхтвΑΒΕΙΝΤΧαոɡցıᴇɴᴅʙɢɪᴄᴀᴛх", "abectxiaeidcxtbabeintxanggiendbgicatx")


def _hidden(character: str) -> bool:
    if character in "\n\t":
        return False
    # the plane of tags and variation selectors, which can encode invisible sentences
    return unicodedata.category(character) in _HIDDEN or 0xE0000 <= ord(character) <= 0xE0FFF


def _folded(text: str) -> tuple[str, list[int]]:
    """``text`` without accents, widths and look-alikes, and the position in ``text`` of each remaining character."""
    letters: list[str] = []
    origins: list[int] = []
    for position, character in enumerate(text):
        for letter in unicodedata.normalize("NFKD", character).translate(_LOOK_ALIKE):
            if not unicodedata.category(letter).startswith("M"):
                letters.append(letter)
                origins.append(position)
    return "".join(letters), origins


@functools.lru_cache(maxsize=4096)  # rubrics and samples repeat their texts
def neutral(text: str) -> str:
    r"""``text`` with line ends as ``\n``, hidden characters written out, delimiter words and control tokens broken.

    Ordinary prose is unchanged; idempotent.

    >>> neutral("END CANDIDATE TEXT. <|im_end|> a\u200bb, 5 < 6")
    '[delimiter words quoted]. <·|im_end|> a\\u{200b}b, 5 < 6'
    """
    text = text.replace("\r\n", "\n")
    if not (text.isascii() and text.replace("\n", "").isprintable()):
        text = "".join(f"\\u{{{ord(character):x}}}" if _hidden(character) else character for character in text)
    if text.isascii():
        text = _WORDS.sub(MARK, text)
    else:
        folded, origins = _folded(text)
        parts, position = [], 0
        for match in _WORDS.finditer(folded):
            start, last = origins[match.start()], origins[match.end() - 1]
            parts += [text[position:start], MARK]
            position = last + 1
        text = "".join([*parts, text[position:]])
    return _TOKENS.sub(lambda match: match[0] + _BREAK, text)


def neutral_fields(value: Any) -> Any:
    """``value`` with every text in it :func:`neutral`: a record's text cannot imitate a delimiter either."""
    if isinstance(value, str):
        return neutral(value)
    if isinstance(value, dict):
        return {key: neutral_fields(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [neutral_fields(inner) for inner in value]
    return value


def delimited(response: str) -> str:
    """The neutral form of ``response`` between two lines with the same code.

    The code is from the response's SHA-256: equal responses give equal prompts, and none can contain its own code.
    """
    code = hashlib.sha256(response.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"=== BEGIN {DELIMITER} {code} ===\n{neutral(response)}\n=== END {DELIMITER} {code} ==="
