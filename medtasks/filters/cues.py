r"""The words that make an option the answer: patterns over texts whose letters are marked.

Patterns are regular expressions with abbreviations: ``{name}`` is an entry of the vocabulary, a blank is white space,
``~`` optional white space, ``§`` the letter, ``¶`` any letter, ``¬`` a denied one. All repetitions are bounded, so that
reading takes linear time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

from medtasks.filters.mentions import ASIDE, DENIED, MARK


class Rank(IntEnum):
    """How firmly an option is called the answer, as in rule 3 of ``option_letter``."""

    TENTATIVE = 1
    SUGGESTED = 2
    STATED = 3
    CONCLUDED = 4
    ANSWER = 5
    FINAL = 6


@dataclass(frozen=True)
class Cue:
    """A pattern whose group ``letter`` is a MARK; a group ``sign`` is what separates a label from its letter.

    ``loose``: the words are those of prose, and the letter must end its clause.
    """

    pattern: re.Pattern[str]
    rank: Rank
    loose: bool


_WORDS = {
    "qualifier": (
        "final|revised|updated|corrected|correct|right|best|most|likely|appropriate|suitable|accurate|single|chosen|selected|predicted|probable"
        "|only|remaining|plausible|proper|true|model|overall|my|our|the"
    ),
    "answer": (
        "answers?|ans|response|reply|prediction|output|selection|result|conclusion|decision|verdict|solution|pick"
        "|guess|vote|bet|preference|correction|assistant|(?:correct|predicted|selected|chosen)(?=~:)"
        "|réponse|antwort|respuesta|risposta|resposta|ответ"
    ),
    "option": (
        "option|choice|letter|label|key|interval|diagnosis|pair|statement|description|fit|match|sequence|transition|finding|change"
    ),
    "clause": "is|are|was|were|not|never|whether|if|nor|wrong|incorrect|but|because|since|so|and",
    "because": (
        "because|since|as|given|for|due|based|with|so|which|on|in|by|at|from|rather|instead|over"
    ),
    "is": "is|are|was|were|remains|becomes|falls on|est|ist|es|è",
    "mustbe": (
        "(?:would|will|must|should|has to|have to|appears to|seems to|turns out to|proves to)"
        "(?: therefore| thus| then)? be"
    ),
    "maybe": "(?:may|might|could|can)(?: well| also)? be",
    "filler": (
        "most|likely|probably|clearly|definitely|therefore|thus|indeed|still|then|actually|simply|now|either|both|the"
        "|best|correct|right|answer|final|option|choice|interval|letter|(?:given|described) (?:by|in|as)|by|be|to"
    ),
    "therefore": (
        "therefore|thus|hence|so|consequently|accordingly|overall|ultimately|in conclusion|in summary|to conclude"
        "|finally|altogether|taken together|on balance"
    ),
    "I": "(?:I|we|let['’]?s|let us|let me)(?:['’](?:d|ll|ve|m|re)| am| are)?",
    "will": "would|will|shall|have|has|must|can|do|rather|therefore|thus|then|finally|to|also|now|still",
    "pick": (
        "choos(?:e|ing)|chose|chosen|select(?:ed|ing)?|pick(?:ed|ing)?|answer(?:ing)?"
        "|go(?:ing)?(?: ahead)? (?:with|for)|opt(?:ing|ed)? for|settl(?:e|ed|ing) (?:on|for)|vot(?:e|ing) for"
        "|stick(?:ing)? with|decid(?:e|ed) on|bet(?:ting)? on|commit(?:ting)? to|respond(?:ing)? with|take|mark|submit"
    ),
    "believe": "think|believe|say|guess|meant?|conclude|suspect|determine|infer|reckon",
    "leaving": "(?:leav(?:es|ing)|left)(?: us| only)*(?: with)?|namely|making(?: it)?|actually|rather",
    "surely": "most likely|very likely|likely|probably|definitely|clearly|certainly",
    "perhaps": "perhaps|possibly|maybe",
    "suggests": (
        "point(?:s|ing)?(?: clearly| strongly)? to(?:wards?)?|correspond(?:s|ing)? to|match(?:es|ing)?|consistent with"
        "|compatible with|supports?|supporting|favou?rs?|favou?ring|indicat(?:es|ing)|suggest(?:s|ing)|fits?"
        "|describ(?:es|ed|ing)(?: by| in)?|in (?:line|keeping) with|align(?:s|ing|ed)? with|captured by|given by"
        "|lean(?:s|ing)? to(?:wards?)?|represented by"
        "|(?:emerg|resolv|appear|occur)(?:e?s|ing) (?:in|within|during)(?: the)? interval"
    ),
    "seems": "seems?|appears?|looks?|being|as",
    "adverb": (
        "most|likely|clearly|therefore|thus|single|the only|indeed|also|definitely|more|probably|the|a|my|our|best"
        "|overall|final|to be|one|what I(?: would)?|what I['’]d"
    ),
    "right": "correct|right|true|best|answer|appropriate|accurate|choice|pick|choose|select|selected|chosen",
    "likely": "likely|probable|suitable|plausible|reasonable|consistent|fitting",
    "kind": "answer|option|choice|diagnosis|interval|one|explanation",
    "tells": "supported|consistent|correct|right|true|left|remaining|fits|matches|matching",
    "thebest": "the (?:most )?(?:best|correct|right|only|appropriate|accurate|likely|suitable|probable)(?: correct)?",
    "fits": "fits?|match(?:es)?|aligns|remains|stands out|makes (?:the )?most sense",
    "bestfits": (
        "(?:best|most (?:closely|accurately|likely)) (?:fits?|match(?:es)?|describes?|explains?|represents?|captures?"
        "|corresponds|aligns|reflects|answers)"
    ),
    "supported": "likely|probable|supported|consistent|match|fit|favou?red|suitable",
    "possible": (
        "(?:is|are|remains?|seems?) (?:(?:also|equally|both|still) )?(?:possible|plausible|compatible|conceivable)"
    ),
}  # fmt: skip
"""Whole words (Chinese characters may stand directly beside them)."""

_PARTS = {
    "start": r"^[^\w\n]{0,12}",
    "open": r"[(\[{\"'“‘]{0,2}[^\S\n]?",
    "blank": r"[^\S\n]{1,4}",
    "end": r"(?=~(?:$|[.!,;:)\]\"”'’。、✓(\[–—→-]|{because}|以|因|而))",
    "stop": r"(?=~(?:$|[.!,;|]))",
    # between a label and its letter
    "sign": r"(?:[:=|#]|-{1,2}>?|=>|[–—→⇒…]|\.{3})",
    "may": "(?:{maybe}|(?<!最)可能(?:是|为|選|选))",
    "be": "(?:['’]s|{is}|{may}|{mustbe})",
    "chinesebe": "(?:应该|應該|应当|應當|应|應|就|则|則|即|也|仍|只能|必)?(?:可能)?(?:是|为|為|选择|選擇|选|選)了?",
    "says": r"[\"')\]]{0,2}~\.?(?:{be}~{sign}?|{chinesebe}~:?|(?P<sign>{sign}))\s{0,6}",
    "again": "(?:final )?(?:option|choice|letter|answer|interval)s?~{sign}~|选项|選項",
    "lead": "(?:{open}(?:{filler} |{again})){0,5}{open}",
    # what a label is called: an answer by itself, an option where it is said to be right, or begins a line
    "further": (
        r"(?:[^\S\n]{1,3}(?!{clause}|(?:options|choices)~[:=|])[^\W_][\w'’/-]{0,30}){0,12}?"
        r"(?:[^\S\n]?\([^()\n]{0,60}\))?"
    ),
    "chinese": (
        r"(?:最终的?|最終的?|最后的?)?(?:答(?=\s?:)|答案|回答|结论|結論|诊断|診斷|预测|输出|정답|답|答え|正解"
        r"|(?:{start}|正确的?|正確的?|最[佳优]|最(?:合适|符合|可能)的?|所|应)(?:选项|選項|选择|選擇))"
    ),
    "label": (
        r"(?:{chinese}[^\n。,;!?¶]{0,8}?|(?:{qualifier}(?:[^\S\n]|[_-]){1,3}){0,4}{answer}{further}"
        r"|(?:(?:{start}|{qualifier}(?:[^\S\n]|[_-]){1,3}){option}|{qualifier} one){further})"
    ),
    "conclusion": "(?:{therefore}|因此|所以|故|因而|综上(?:所述)?)",
    "itis": "(?<![A-Za-z0-9])(?:it|that|this|which)~{be}",
    "aside": ASIDE,
    "seen": r"[^\S\n]{0,4}(?:{be}|{seems}) (?:{adverb} ){0,5}",
    "fully": (
        r"(?!-)(?! (?:for T\d|if|when|that|only|with (?:respect|regard)|regarding|about|in (?:terms|that|so)|at first))"
    ),
}  # fmt: skip
"""The other parts of patterns."""

_CUES: tuple[tuple[Rank, str], ...] = (
    # Answer: B; the correct option is B; final: B
    (Rank.STATED, "{label}{says}{lead}§"),
    (Rank.STATED, "(?:(?<![A-Za-z])final(?:ly)?|最终|最后)~(?P<sign>[:=])~{lead}§"),
    (Rank.STATED, r"(?:{start}|[.,;:(]~|{qualifier}\s)(?:answer|ans|prediction)\.?[\])]? {open}§(?:{end})"),
    # I'm going with B; choosing B
    (Rank.STATED, r"{I}(?: {will}){0,4} {pick} (?:for |with )?:?~{lead}§"),
    (Rank.STATED, r"(?:{start}|[.,;:!?]\s|{conclusion}\s){pick} :?~{lead}§{end}"),
    # therefore B; I think it's B; leaving B; not A but B
    (Rank.CONCLUDED, "{conclusion},?:?~(?:(?:{itis}|we(?:['’]re| get| have)(?: left with)?) )?{lead}§{end}"),
    (Rank.STATED, "{I}(?: {will}){0,2} {believe}(?: that)?(?: it~{be})? {lead}§{end}"),
    (Rank.STATED, "(?:{itis}|{leaving},?|that is,|¬[.,;]? (?:but|rather|instead)) {lead}§{end}"),
    (Rank.STATED, "(?:{start}|[.!?] ){surely},? {lead}§{end}"),
    (Rank.STATED, r"\bi\.e\.,?~{lead}§{end}"),
    # points to B; perhaps B
    (Rank.SUGGESTED, "{suggests} {lead}§{end}"),
    (Rank.TENTATIVE, "(?:(?:it|this|that|there) {may}|{perhaps}|(?<!最)可能是),?~{lead}§{end}"),
    # 故选B; 应该是B; 符合B
    (Rank.STATED, "(?:选择|選擇|选|選)(?:了|的是|为|為)?~:?~{open}§"),
    (Rank.STATED, "(?:(?:应该|應該|应|應)(?:是|为|為)|(?:判断|判定|确定|考虑)(?:为|是)|剩下?的?是?)~§"),
    (Rank.CONCLUDED, "(?:因此|所以|故)(?:是|为)~§"),
    (Rank.STATED, r"(?:的是|就是|即为?|也就是|答案[)\]]?)~§"),
    (Rank.SUGGESTED, "(?:符合|对应|支持|提示|指向)~§"),
    # B is correct; B best describes it; B it is; B: correct
    (Rank.STATED, "§{aside}{seen}(?:{right}{fully}|{likely} (?:correct )?{kind})"),
    (Rank.STATED, "§{aside}{blank}(?:{bestfits}|the answer|{thebest} {kind})"),
    (Rank.STATED, "§{aside}{blank}(?:it (?:is|must be)|wins|correct|true){stop}"),
    (Rank.STATED, r"§{aside}[\"')\]]{0,2}~[:–—|-]~(?:this is )?(?:the )?(?:(?:correct|true)\b|right{stop})"),
    (Rank.STATED, r"{start}§[^\n¶¬]{0,200}[.;:–—|-]\s{0,2}(?:this (?:\w{1,12} )?is )?(?:correct|true)[^\w\n]{0,4}$"),
    (Rank.STATED, "§{aside}(?:的?(?:描述|说法))?[也都均]?(?:是|为|為)?最?(?:正[确確]|[对對]的|符合|合适|恰当|佳)"),
    (Rank.STATED, "§{aside}{blank}(?:is|remains) the only (?:{option}|{kind})(?: (?:that|which))?(?: {be})? {tells}"),
    (Rank.STATED, "(?:{option}|one) (?:that|which) {be} {right} {be}~:?~{lead}§"),
    (Rank.SUGGESTED, "§{aside}{seen}{supported}"),
    (Rank.SUGGESTED, "§{aside}{blank}(?:(?:clearly|correctly|perfectly|would) )?{fits}"),
    (Rank.TENTATIVE, "§{aside}{blank}(?:{may}|{possible})"),
)  # fmt: skip


def _compiled(cue: str) -> re.Pattern[str]:
    """The regular expression that ``cue`` abbreviates."""
    vocabulary = {name: rf"(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])" for name, words in _WORDS.items()}
    vocabulary |= _PARTS
    while (spelt := re.sub(r"\{([A-Za-z]+)\}", lambda part: vocabulary[part[1]], cue)) != cue:
        cue = spelt
    for sign, meaning in (
        (" ", r"\s{1,4}"),
        ("~", r"\s{0,4}"),
        ("§", f"(?P<letter>{MARK})"),
        ("¶", MARK),
        ("¬", DENIED),
    ):
        cue = cue.replace(sign, meaning)
    return re.compile(cue, re.IGNORECASE | re.MULTILINE)


SENTENCE_ENDS = re.compile(r"\n+|[.!?][\"')\]]{0,2}(?=\s)|[。！？；]")

FINAL = re.compile(r"(?:(?:the|my|our)\s+)?(?<![A-Za-z0-9])final(?:ly|ised|ized)?\b|最[終终后]", re.IGNORECASE)
"""At the beginning of a label, makes it final."""

CONCLUDES = _compiled("{conclusion}")
"""Makes what follows it a conclusion."""

CUES = tuple(Cue(_compiled(cue), rank, cue.endswith("{end}")) for rank, cue in _CUES)
"""Every pattern of a claim."""

TICKED = re.compile(
    rf"^[^\w\n{MARK}]{{0,8}}✓[^\w\n✗{MARK}]{{0,8}}(?P<letter>{MARK})|(?P<before>{MARK})(?=[^\n✗{MARK}]{{0,160}}✓)",
    re.MULTILINE,
)
"""An option with a tick on its line."""
