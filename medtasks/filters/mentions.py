"""Single letters in running text that may name an option, each replaced by one character that rules can look for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from medtasks.filters.species import SPECIES

MARK = "\ue000"
"""Replaces letters in the text (a private-use character, which texts do not contain)."""

DENIED = "\ue001"
"""Replaces letters that the text names only to deny that they are the answer."""

_OPEN = r"[(\[{<\"'“‘«]{0,3}"
_CLOSE = r"[)\]}>\"'”’»]{0,3}"
_IN_WORD = r"[A-Za-z0-9_\u00c0-\u024f]"  # not \w: Chinese characters stand directly beside a letter
_NO_WORD_BEFORE = rf"(?<!{_IN_WORD})(?<!{_IN_WORD}[-‐‑'’])(?<![A-Za-z_\u00c0-\u024f]\.)(?<!°)"
_NO_WORD_AFTER = rf"(?!{_IN_WORD}|[-‐‑'’.]{_IN_WORD}|\+)"
# Words that no article stands before: "A" before any other word is one, as a lower-case letter is part of a sentence.
_NO_NOUN = (
    r"(?:or|nor|and|but|not|if|is|are|was|were|be|because|since|as|would|must|should|could|can(?:not)?|may|might|will"
    r"|does|do|did|has|had|isn['’]t|doesn['’]t|wasn['’]t|can['’]t|seems?|appears|remains|fits|matches|describes|shows"
    r"|states|says|suggests|corresponds|represents|reflects|captures|for|in|on|at|with|from|by|to|due|of|the|this|these"
    r"|that|which|it|who|rather|instead|while|where|so|then|vs|versus|over|here|now|too|also|only|again|based|according"
    r"|after|before|between|among|than|given[ \t]+(?:the|that)|T[1-9])\b"
)
_LETTER = (
    rf"{_NO_WORD_BEFORE}(?:[B-HJ-Z]|[Aa-hj-z](?![ \t]+(?!{_NO_NOUN})[^\W\d_])|[Ii](?![ \t]+(?!(?:is|or)\b)[^\W\d_]))"
    + _NO_WORD_AFTER
)
_NOUN = (
    r"(?i:(?:(?:answer|option)[ \t]{1,2})?(?:options?|choices?|letters?)(?:[ \t](?:no\.|number|letter))?[ \t]{1,3})"
    r"|选项|選項"
)
_NAMED_FIRST = rf"(?P<noun>(?<![^\W_\u4e00-\u9fff])(?:{_NOUN})){_OPEN}(?:[A-HJ-Z]{_NO_WORD_AFTER}|{_LETTER})"
_FIRST = rf"{_OPEN}(?:{_NAMED_FIRST}|{_LETTER})"
_SINGULAR = r"(?:is|was|does|has|seems|shows|would|cannot|can['’]t|isn['’]t|wasn['’]t|doesn['’]t)\b"
_JOINT = (
    rf"(?:\s{{0,4}},?\s{{0,4}}\b(?:and/or|or|and|as\s+well\s+as|versus|vs\.?)(?=[\s(\[\"'])\s{{0,4}}"
    rf"|\s{{0,4}}(?:或者?|还是|和|与|及|以及|或是)\s{{0,4}}"
    rf"|\s{{0,4}}(?:[,/&+|]|、)\s{{0,4}}(?!{_OPEN}[A-Z]{_CLOSE}\s{{1,3}}{_SINGULAR}))"
    r"(?:(?:maybe|possibly|perhaps|probably|even|also|else|either|the|option|choice|letter|answer)\s+|选项){0,3}"
)
_MENTION = re.compile(
    rf"(?P<letters>{_FIRST}(?:{_CLOSE}\??{_JOINT}{_OPEN}{_LETTER}){{0,25}})(?P<close>{_CLOSE})"
    r"(?:选项|選項|项|項|[ \t](?i:option|choice)(?!\w))?",
    re.ASCII,
)
_ONE_LETTER = re.compile(rf"(?<!{_IN_WORD})[A-Za-z](?!{_IN_WORD})")
_LETTERS_ALONE = re.compile(r"[\W_]*(?:[A-Za-z]|[A-Z](?:[\W_]+[A-Z])+|[a-z](?:\s*[^\w\s]\s*[a-z])+)[\W_]*")

# A label that its text follows without a blank: "B.Pneumothorax", "B-T2→T3"
_GLUED = re.compile(
    r"(?P<head>^[^\w\n]{0,12}|[:=]\s{0,4}[(\[{\"']{0,2}|\b(?:is|are|be|option|answer|choice)\s{1,3}[(\[{\"']{0,2}|[是为為选選]\s?)"
    r"(?P<letter>[A-Z])(?P<sign>\.(?=[^\W\d_][^\W_]|[\u4e00-\u9fff])|[-–—](?=T\d|[A-Z][a-z]|[\u4e00-\u9fff]))",
    re.MULTILINE,
)

_ABBREVIATED = re.compile(r"(?<![A-Za-z])e\.\s?g\.,?\s?", re.IGNORECASE)
_BEHIND_LETTER = (
    "lines?|cells?|waves?|dimers?|sections?|symptoms?|fib(?:rillation|ers?|res?)?|mode|arm|spine|tubes?|wires?"
    r"|lymphocytes?|lactam\w*|reactive|peptides?|shaped|scans?|tach\w*|flutter|type|loop|streptococc\w*|natriuretic"
    "|stents?|plasty|rays?|virus|antigens?|toxins?|hooks?|bands?|rings?|sign"
)
_NAMED_LETTER = re.compile(
    r"\b(?:N/A|A/P|P/A|L/R|R/L|B/L|I/O|R/O|S/P|H/O|Y/O|W/O|C/O|C/W|[a-z]/[a-z])\b"
    rf"|\b[A-Z]\.?[ \t]?(?:{SPECIES})\b|\b[A-Za-z](?:-(?i:{_BEHIND_LETTER})|[ \t](?:{_BEHIND_LETTER}))\b"
    r"|(?<![A-Za-z0-9_])[A-Z]\)?(?:[-–—~]|\s(?:to|through|thru)\s|\s?(?:\.{2,3}|至|到)\s?)\(?[A-Z](?![A-Za-z0-9_])"
    r"|(?:图像?|图片|圖|维生素|肝炎|[类亚]型)\s?[A-Z](?![A-Za-z])|[A-Z](?:型|族|组|线|期|级|超|细胞|淋巴|链球菌)",
)
_BEFORE_LETTER = (
    r"(?:dr|prof|mrs?)\.?|vitamin|hepatitis|influenza|flu|kerley|(?:sub)?type|images?|figures?|fig\\.?|panels?|patients?|subjects?|stage|group"
    "|zone|grade|class|category|(?<!this )(?<!that )(?<!each )case|scan|film|view|segment|factor|proteins?|troponin"
    "|coenzyme|cyclosporine?|amphotericin|polymyxin|toxin|immunoglobulin|ig|child[- ]pugh|pugh|stanford|weber|forrest"
    "|asa|killip|leads?|arrows?|label(?:l)?ed|marker|lesions?|region|area|points?|site|structure|plan|part|section"
    "|table|appendix|row|column|box|phase|series|sequence|frame|slide|photo(?:graph)?|picture|radiograph|sample|node"
    "|nerve|plane|level|lobe|station|streptococcus|strep|haemophilus|antigen|complement|serotype|genotype|variant"
    "|quadrant|compartment|cluster|component|tracing|curve|arm|round"
)
_NAMED = re.compile(
    rf"(?<![^\W_])(?:{_BEFORE_LETTER})[ \t]{{1,3}}{_OPEN}[A-Za-z]{_NO_WORD_AFTER}"
    rf"(?:{_CLOSE}(?:\s{{0,2}}(?:,|/|&)\s{{0,2}}|\s(?:and|or)\s){_OPEN}[A-Z]{_NO_WORD_AFTER}){{0,8}}{_CLOSE}",
    re.IGNORECASE,
)

ASIDE = (
    r"(?:\s{0,3}[(\[][^()\[\]\n]{0,80}[)\]])?"
    r"(?:[.:,]?\s{0,3}T\d(?:\s?(?:→|->|–|-|to|and|,|&)\s?T\d)?(?:\s?\([^()\n]{0,40}\))?,?)?"
)
"""Optional text between a letter and its verb: a bracket, an interval such as ``T2 → T3``."""

_WRONG = (
    r"(?:not\b|n['’]t\b|in\s?correct|inaccurate|wrong|false|excluded|ruled\s+out|unlikely|eliminated|implausible|out\b"
    r"|unsupported|less\s+(?:likely|plausible|consistent)|inconsistent|incompatible|inappropriate|rejected|dismissed)"
)
_DENIED_BEFORE = re.compile(
    r"(?:\b(?:not|never|neither|nor|cannot|except|(?:all|anything|everything)\s+but|other\s+than|than|unlike|without|none\s+of|instead\s+of|rul(?:e|es|ed|ing)\s+out"
    r"|(?:exclu[ds]|eliminat|reject|discard|dismiss)\w{1,4}(?:\s+(?:of|for))?)|n['’]t)\s+"
    r"(?:(?:be|think|believe|choose|select|pick|say|option|choice|answer|that|the|correct|it|is|either|both)s?\s+){0,5}$"
    r"|(?:不选|不選|不是|不应该?选|不应选|不應選|不能选|并非|並非|而非|而不是|排除了?|除了?|不考虑|非)\s?$",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    rf"{ASIDE}[^\S\n]{{0,4}}(?:"
    r"[.:–-]?\s{0,4}(?:is|are|was|were|seems?|looks?|appears?|(?:can|would|could|must)\s+(?:all\s+|both\s+)?be)\s+"
    rf"(?:[a-z]{{2,12}}\s+){{0,2}}?{_WRONG}"
    r"|[:–—→|-]?\s{0,4}(?:in\s?correct|wrong|false|not\s+(?:correct|right|true))\b"
    r"|\s{0,3}[:–—-]\s{0,3}not\b|[:–—|-]?[^\S\n]{0,4}✗|\s{0,3}[:–—|-]\s{0,3}no[.!]?[ \t]{0,3}(?:$|\n)"
    rf"|\s{{0,3}}[:–—|-]\s{{0,4}}(?:this|that|it)(?:\s+(?:option|choice|interval|one|answer))?\s+is\s+(?:[a-z]{{2,12}}\s+)?{_WRONG}"
    r"|(?:cannot|(?:can|does|do|did|would)\s+not|fails?\b|(?:can|is|are|does|do|did|would|was)n['’]t|can['’]t)\b"
    r"|(?:均|都|也|的?描述|的?说法)?(?:是|为)?(?:错误|錯誤|错|不正确|不正確|不对|不符|不成立|不合适|不可能|可以?排除|被排除|有误))",
    re.IGNORECASE,
)
_LINE_STARTS = re.compile(r"(?:^|\n)(?P<lead>[^\w\n]{0,12})$")
_DENIED_LINE = re.compile(  # "A. T1 → T2: no change. Not correct."
    rf"(?:(?!(?<!{_IN_WORD})[A-Z](?!{_IN_WORD}))[^\n]){{0,200}}?(?:✗|[.;:–—|-]\s{{0,2}}(?:this\s(?:\w{{1,12}}\s)?is\s)?"
    r"(?:not\s(?:correct|right|supported)|incorrect|wrong|false|excluded|ruled\sout))[^\w\n✓]{0,4}$",
    re.IGNORECASE | re.MULTILINE,
)

_WINDOW = 120


@dataclass(frozen=True)
class Mention:
    """Letters named in one place, in upper case.

    ``upper``: all of them are capitals; ``closed``: a bracket or quote follows; ``bracketed``: one also precedes;
    ``named``: a word such as *option* precedes.
    """

    letters: frozenset[str]
    upper: bool
    closed: bool
    bracketed: bool
    named: bool


@dataclass(frozen=True)
class Marked:
    """A text in which ``MARK`` (or ``DENIED``) replaces every mention; ``mentions`` by position of the marks."""

    text: str
    mentions: dict[int, Mention]


def letters_alone(plain: str) -> frozenset[str]:
    """The letters of a text of single letters and punctuation only; none for any other text."""
    if _LETTERS_ALONE.fullmatch(plain) is None or set(plain) & set("✓✗") or _NAMED_LETTER.search(plain):
        return frozenset()
    return frozenset(character.upper() for character in plain if character.isalpha())


def mark_letters(plain: str) -> Marked:
    """``plain`` with its mentions marked, and letters that belong to a name (``vitamin D``, ``E. coli``) removed.

    >>> marked = mark_letters("Image A shows no C-shaped tube, so option (B) is right, not D.")
    >>> [sorted(mention.letters) for mention in marked.mentions.values()]
    [['B']]
    """
    plain = plain.translate({ord(MARK): None, ord(DENIED): None})
    plain = _NAMED.sub(" named ", _NAMED_LETTER.sub(" named ", _ABBREVIATED.sub(" for example, ", plain)))
    plain = _GLUED.sub(r"\g<head>\g<letter>\g<sign> ", plain)
    pieces: list[str] = []
    mentions: dict[int, Mention] = {}
    end = length = 0
    for match in _MENTION.finditer(plain):
        mention = _mention(match)
        if mention is None:
            continue
        between = plain[end : match.start()]
        end = match.end()
        length += len(between)
        pieces.append(between)
        if _is_denied(plain, match):
            pieces.append(DENIED)
        else:
            mentions[length] = mention
            pieces.append(MARK)
        length += 1
    return Marked("".join(pieces) + plain[end:], mentions)


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


def _is_denied(plain: str, match: re.Match[str]) -> bool:
    before = plain[max(0, match.start() - _WINDOW) : match.start()]
    if _DENIED_BEFORE.search(before) or _DENIED_AFTER.match(plain, match.end()):
        return True
    line = _LINE_STARTS.search(before)
    return line is not None and ("✗" in line["lead"] or _DENIED_LINE.match(plain, match.end()) is not None)
