"""Letters and option texts in a response that may be the answer, each replaced by one character that rules can find."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from medtasks.answers.cues import DENIED, MARK, OWN, Cues, cues_of, names
from medtasks.answers.option_text import TEXTS, mark_texts

_OPEN = r"[(\[{<\"'“‘«]{0,3}"
_CLOSE = r"[)\]}>\"'”’»]{0,3}"
_IN_WORD = r"[A-Za-z0-9_\u00c0-\u024f\u1e00-\u1eff]"  # not \w: Chinese characters stand directly beside a letter
_NO_WORD_BEFORE = rf"(?<!{_IN_WORD})(?<!{_IN_WORD}[-‐‑'’])(?<![A-Za-z_\u00c0-\u024f\u1e00-\u1eff]\.)(?<!°)"
_NO_WORD_AFTER = rf"(?!{_IN_WORD}|[-‐‑'’.]{_IN_WORD}|\+)"
_NOUN = (
    r"(?i:(?:(?:answer|option)[ \t]{1,2})?(?:options?|choices?|letters?|opción|opção|opzione|optie|seçenek"
    r"|letra|lettera|lettre|buchstabe)"
    r"(?:[ \t](?:no\.|number|letter))?[ \t]{1,3})|选项|選項|選択肢|선택지[ \t]?"
)
_SINGULAR = (
    r"\s{0,3}(?:不|错|錯|则|正确|才)"
    r"|\s{1,3}(?:is|was|does|has|seems|shows|would|cannot|can['’]t|isn['’]t|wasn['’]t|doesn['’]t)\b"
)
_ONE_LETTER = re.compile(rf"(?<!{_IN_WORD})[A-Za-z](?!{_IN_WORD})")
_LETTERS_ALONE = re.compile(r"[\W_]*(?:[A-Za-z]|[A-Z](?:[\W_]+[A-Z])+|[a-z](?:\s*[^\w\s]\s*[a-z])+)[\W_]*")
# A label that its text follows without a blank: "B.Pneumothorax", "B-T2→T3"
_GLUED = re.compile(
    r"(?P<head>^[^\w\n]{0,12}|[:=]\s{0,4}[(\[{\"']{0,2}|\b(?:is|are|be|option|answer|choice)\s{1,3}[(\[{\"']{0,2}|[是为為选選]\s?)"
    rf"(?P<letter>[A-Z])(?P<sign>\.(?=[^\W\d_][^\W_]|[\u4e00-\u9fff{TEXTS}])|[-–—](?=T\d|[A-Z][a-z]|[\u4e00-\u9fff{TEXTS}]))",
    re.MULTILINE,
)
_ABBREVIATED = re.compile(r"(?<![A-Za-z])e\.\s?g\.,?\s?", re.IGNORECASE)
_LINE_STARTS = re.compile(r"(?:^|\n)(?P<lead>[^\w\n]{0,12})$")
_TEXT_AFTER = re.compile(
    rf"(?P<sign>[)\]\"'”’]{{0,2}}[.:,]?[)\]]?)[ \t]{{0,3}}(?:[-–—=:][ \t]{{0,3}})?[(\[\"'“]{{0,2}}(?P<text>[{TEXTS}])"
    r"[)\]\"'”]{0,2}"
)
_STOPS = re.compile(r"[ \t]{0,3}(?:$|[.,;!\n])")
_TEXT_BEFORE = re.compile(
    rf"(?P<text>[{TEXTS}])[ \t]{{0,2}}[\"'”]?[ \t]{{0,2}}(?P<sign>[–—:,=→>-]{{1,2}}[ \t]{{0,2}})?\Z"
)
_SUFFIXED = re.compile(r"(?<=\b[A-Z])['’](?=(?:[dt][ıiuü]r|[nyd]?[ıiuü]n?)(?!\w))")  # Turkish: "B'dir"
_WINDOW = 120


@cache
def _names() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Letters within names, by the words behind them or as a whole, and by the words before them."""
    known = names()
    whole = re.compile(
        r"(?<![\w'’‘\"])[AEIOU]['’](?=[ \t]+[^\W\d_])"  # Italian: "E' presente"
        r"|\b(?:N/A|A/P|P/A|L/R|R/L|B/L|I/O|R/O|S/P|H/O|Y/O|W/O|C/O|C/W|[a-z]/[a-z])\b"
        rf"|\b[A-Z]\.?[ \t]?(?:{known['species']})\b|\b[A-Za-z](?:-(?i:{known['behind']})|[ \t](?:{known['behind']}))\b"
        r"|(?<![A-Za-z0-9_])[A-Z]\)?(?:[-–—~]|\s(?:to|through|thru)\s|\s?(?:\.{2,3}|至|到)\s?)\(?[A-Z](?![A-Za-z0-9_])"
        r"|(?:图像?|图片|圖|维生素|肝炎|[类亚]型)\s?[A-Z](?![A-Za-z])|[A-Z](?:型|族|组|线|期|级|超|细胞|淋巴|链球菌)"
    )
    before = re.compile(
        rf"(?<![^\W_])(?:{known['before']})[ \t]{{1,3}}{_OPEN}[A-Za-z]{_NO_WORD_AFTER}"
        rf"(?:{_CLOSE}(?:\s{{0,2}}(?:,|/|&)\s{{0,2}}|\s(?:and|or)\s){_OPEN}[A-Z]{_NO_WORD_AFTER}){{0,8}}{_CLOSE}",
        re.IGNORECASE,
    )
    return whole, before


@cache
def _mentioned(vocabulary: Cues) -> re.Pattern[str]:
    """One or several joined letters, with the noun before them and the brackets around them."""
    no_noun = rf"(?:{names()['no_noun']})(?!{_IN_WORD})"
    letter = (
        rf"{_NO_WORD_BEFORE}(?:[B-HJ-Z]|[Aa-hj-z](?![ \t]+(?!{no_noun})[^\W\d_])|[Ii](?![ \t]+(?!(?:is|or)\b)[^\W\d_]))"
        + _NO_WORD_AFTER
    )
    named = rf"(?P<noun>(?<![^\W_\u4e00-\u9fff])(?:{_NOUN})){_OPEN}(?:[A-HJ-Z]{_NO_WORD_AFTER}|{letter})"
    first = rf"{_OPEN}(?:{named}|{letter})"
    spelt = vocabulary.part("or").replace(" ", r"\s{1,4}")
    besides = vocabulary.part("besides").replace(" ", r"\s{1,4}")
    joint = (
        rf"(?:\s{{0,4}},?\s{{0,4}}{spelt}(?=[\s(\[\"'A-Z])\s{{0,4}}"
        rf"|\s{{0,4}}(?:[,/&+|]|、)\s{{0,4}}(?!{_OPEN}[A-Z]{_CLOSE}(?:{_SINGULAR})))"
        rf"(?:{besides}\s{{0,4}}){{0,3}}"
    )
    return re.compile(
        rf"(?P<letters>{first}(?:{_CLOSE}\??{joint}{_OPEN}{letter}){{0,25}})(?P<close>{_CLOSE})"
        r"(?:选项|選項|项|項|[ \t](?i:option|choice)(?!\w))?",
        re.ASCII,
    )


@dataclass(frozen=True)
class Mention:
    """Options named in one place, by letters in upper case.

    ``upper``: all of them are capitals; ``closed``: a bracket or quote follows; ``bracketed``: one also precedes;
    ``named``: a word such as *option* precedes; ``own``: the option's text is beside its letter; ``text``: there is no
    letter but an option's text.
    """

    letters: frozenset[str]
    upper: bool = True
    closed: bool = True
    bracketed: bool = False
    named: bool = False
    own: bool = False
    text: bool = False


@dataclass(frozen=True)
class Marked:
    """A text in which ``MARK`` (or ``DENIED``) replaces every mention; ``mentions`` by position of the marks."""

    text: str
    mentions: dict[int, Mention]
    cues: Cues


def letters_alone(plain: str) -> frozenset[str]:
    """The letters of a text of single letters and punctuation only; none for any other text."""
    if _LETTERS_ALONE.fullmatch(plain) is None or set(plain) & set("✓✗") or _names()[0].search(plain):
        return frozenset()
    return frozenset(character.upper() for character in plain if character.isalpha())


def mark_mentions(plain: str, options: Mapping[str, str]) -> Marked:
    """``plain`` with its mentions marked, and letters that belong to a name (``vitamin D``, ``E. coli``) removed.

    >>> marked = mark_mentions("Image A shows no C-shaped tube, so option (B) is right, not D.", {})
    >>> [sorted(mention.letters) for mention in marked.mentions.values()]
    [['B']]
    """
    plain, texts = mark_texts(plain.translate({ord(MARK): None, ord(DENIED): None, ord(OWN): None}), options)
    whole, before = _names()
    plain = whole.sub(" named ", before.sub(" named ", _ABBREVIATED.sub(" for example, ", plain)))
    plain = _GLUED.sub(r"\g<head>\g<letter>\g<sign> ", plain)
    plain = _SUFFIXED.sub(" ", plain)
    return _Marking(plain, texts, cues_of(plain)).marked()


class _Marking:
    """One pass over the mentions of a text."""

    def __init__(self, plain: str, texts: Mapping[str, str], vocabulary: Cues) -> None:
        self._plain, self._texts, self._vocabulary = plain, texts, vocabulary
        self._pieces: list[str] = []
        self._mentions: dict[int, Mention] = {}
        self._end = self._length = 0
        headings = [match.end() for match in vocabulary["heading"].finditer(plain)]
        self._discussed = headings

    def marked(self) -> Marked:
        plain = self._plain
        for match in _mentioned(self._vocabulary).finditer(plain):
            mention = _mention(match)
            if mention is None:
                continue
            start, end, sign = match.start(), match.end(), ""
            beside = _TEXT_AFTER.match(plain, end)
            before = _TEXT_BEFORE.search(plain, max(self._end, start - 8), start)
            if beside and len(mention.letters) == 1:
                letter = self._texts[beside["text"]]
                if {letter} == mention.letters:
                    mention, end, sign = _own(mention), beside.end(), beside["sign"] + OWN
                elif mention.upper and _STOPS.match(plain, beside.end()):
                    mention, end, sign = _with(mention, letter), beside.end(), beside["sign"]
            elif before and len(mention.letters) == 1 and (mention.bracketed or mention.named or before["sign"]):
                letter = self._texts[before["text"]]
                start = before.start()
                mention = _own(mention) if {letter} == mention.letters else _with(mention, letter)
            self._alone(start)
            self._add(mention, start, end, sign)
        self._alone(len(plain))
        return Marked("".join(self._pieces) + plain[self._end :], self._mentions, self._vocabulary)

    def _alone(self, until: int) -> None:
        """Option texts without a letter, up to the next mention."""
        if not self._texts:
            return
        for match in re.compile(f"[{TEXTS}]").finditer(self._plain, self._end, until):
            mention = Mention(frozenset(self._texts[match[0]]), text=True)
            self._add(mention, match.start(), match.end(), "")

    def _add(self, mention: Mention, start: int, end: int, sign: str) -> None:
        between = self._plain[self._end : start]
        self._end = end
        self._length += len(between)
        self._pieces.append(between)
        if self._is_denied(start, end, mention):
            self._pieces.append(DENIED + sign)
        else:
            self._mentions[self._length] = mention
            self._pieces.append(MARK + sign)
        self._length += 1 + len(sign)

    def _is_denied(self, start: int, end: int, mention: Mention) -> bool:
        words, plain = self._vocabulary, self._plain
        before = plain[max(0, start - _WINDOW) : start]
        if words["denied_before"].search(before) or words["denied_after"].match(plain, end):
            return True
        if len(mention.letters) > 1 and words["denied_set"].match(plain, end):
            return True
        if mention.bracketed or mention.text:
            clause = before[max((turn.end() for turn in words["clause_turns"].finditer(before)), default=0) :]
            if words["denies_clause"].search(clause):
                return True
        line = _LINE_STARTS.search(before)
        if (line or mention.bracketed) and self._is_discussed(start):
            return True
        if line is None:
            return False
        return "✗" in line["lead"] or words["denied_line"].match(plain, end) is not None

    def _is_discussed(self, position: int) -> bool:
        """Whether the label is in a list below a heading such as *Why not the others?*."""
        place = bisect_right(self._discussed, position)
        return place > 0 and "\n\n" not in self._plain[self._discussed[place - 1] : position].lstrip("\n")


def _own(mention: Mention) -> Mention:
    return Mention(mention.letters, mention.upper, True, mention.bracketed, mention.named, own=True)


def _with(mention: Mention, letter: str) -> Mention:
    return Mention(mention.letters | {letter}, mention.upper, mention.closed, mention.bracketed, mention.named)


def _mention(match: re.Match[str]) -> Mention | None:
    """The mention of a match; None for the beginning of a list (``Options B``) and for words (``A and a``)."""
    noun = match["noun"] or ""
    named = match["letters"].replace(noun, "", 1)
    letters = _ONE_LETTER.findall(named)
    if noun.rstrip().casefold().endswith("s") and len(letters) == 1:
        return None
    if len({letter.isupper() for letter in letters}) > 1:
        return None
    return Mention(
        letters=frozenset(letter.upper() for letter in letters),
        upper=all(letter.isupper() for letter in letters),
        closed=bool(match["close"]),
        bracketed=bool(match["close"]) and not named[0].isalpha(),
        named=bool(noun),
    )
