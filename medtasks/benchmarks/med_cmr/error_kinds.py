"""Med-CMR: answers that call a picture more or less abnormal than it is, where the options show
which is which.

Only two kinds of questions count, recognised by their options; ``direction_known_rate`` is their
share:

- *graded*: all options but at most one normal one are the same words around one term of one scale
  (severity, stage or grade, number), each with another rank. An option of a higher rank than the
  right one is over-calling.
- *normal or not*: exactly one option says that nothing is abnormal. To choose it wrongly is
  under-calling, to choose another one if it is right is over-calling; errors among abnormal options
  have no direction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from medtasks.benchmarks.error_kinds import Case, Errors
from medtasks.catalog.benchmark import Item
from medtasks.data.sources import read_table
from medtasks.metrics.item_metrics import NO_OPTION, UNANSWERED, ErrorRate

VERSION = "1"  # changes whenever the rule does

_SCALES = [
    tuple(scale.values())
    for scale in read_table(__file__, "vocabulary.yaml", dict[str, Any])["scales"]
]
_NORMAL = re.compile(
    r"(?:(?:an?|the|entirely|completely|within)\s+)*(?:normal(?!\s+(?:variant|pressure)|-)|unremarkable)(?:\s+[\w-]+){0,4}"
    r"|(?:there\s+(?:is|are)\s+)?no\s+(?:(?:evidence|signs?)\s+of\s+)?(?:(?:significant|acute|visible|detectable|obvious|focal"
    r"|apparent|definite|other)\s+)*(?:abnormalit(?:y|ies)|(?:abnormal\s+)?findings?|lesions?|disease|patholog(?:y|ies))",
    re.IGNORECASE,
)
_NONE = re.compile(rf"none|absent|{_NORMAL.pattern}", re.IGNORECASE)


@lru_cache(maxsize=2**15)  # all runs of a leaderboard have the same questions
def ranks_of(question: str, choices: tuple[tuple[str, str], ...]) -> dict[str, int] | None:
    """How abnormal each option is, from 0 for normal; None if the options do not show it.

    >>> ranks_of("How narrow is it?", (("A", "Mild stenosis"), ("B", "Severe stenosis"), ("C", "Normal")))
    {'C': 0, 'A': 2, 'B': 4}
    """
    plain = {letter: text.strip().rstrip(".") for letter, text in choices}
    if graded := _graded(question, plain):
        return graded
    ranks = {letter: int(_NORMAL.fullmatch(text) is None) for letter, text in plain.items()}
    mixed = any(
        ranks[letter] and re.search(r"\bnormal", text, re.IGNORECASE)
        for letter, text in plain.items()
    )
    return None if mixed or list(ranks.values()).count(0) != 1 else ranks


def _graded(question: str, choices: Mapping[str, str]) -> dict[str, int] | None:
    lowest = [letter for letter, text in choices.items() if _NONE.fullmatch(text)]
    rest = {
        letter: re.findall(r"[\w.]+", text.casefold())
        for letter, text in choices.items()
        if letter not in lowest
    }
    if len(lowest) > 1 or len(rest) < 2:
        return None
    for scale, context in _SCALES:
        ranks: dict[str, int] = {}
        for letter, words in rest.items():
            found = [scale[word] for word in words if word in scale]
            if len(found) != 1:  # the common case: no scale
                break
            ranks[letter] = found[0]
        if len(ranks) < len(rest):
            continue
        others = {
            " ".join(word.removesuffix("s") for word in words if word not in scale)
            for words in rest.values()
        }
        if (
            len({*ranks.values()}) < len(rest)
            or len(others) > 1
            or (lowest and 0 in ranks.values())
        ):
            continue
        if re.search(context, f"{question} {others.pop()}", re.IGNORECASE):
            return {**dict.fromkeys(lowest, 0), **ranks}
    return None


def cases(item: Item) -> Iterator[Case]:
    """The cases of a multiple-choice question."""
    for view in item.samples:
        choices, target = view.document.get("choices"), view.document["target"]
        if not choices:
            continue
        chosen = view.filtered if view.status == "ok" and view.filtered in choices else None
        ranks = ranks_of(view.document["question"], tuple(choices.items()))
        yield Case(NO_OPTION.name, chosen is None)
        yield Case("direction_known_rate", ranks is not None)
        if ranks is None or target not in ranks:
            continue
        difference = None if chosen is None else ranks[chosen] - ranks[target]
        if ranks[target] < max(ranks.values()):
            yield Case("overcall_rate", None if difference is None else difference > 0)
        if ranks[target] > min(ranks.values()):
            yield Case("undercall_rate", None if difference is None else difference < 0)


_RULE = {"rule": f"graded-or-normal-v{VERSION}"}
_OPEN = {**_RULE, **UNANSWERED}

ERRORS = Errors(
    (
        ErrorRate(
            "undercall_rate", "Under-call", cases="a-lower-option-exists", choices=_OPEN, harms=True
        ),
        ErrorRate(
            "overcall_rate", "Over-call", cases="a-higher-option-exists", choices=_OPEN, harms=True
        ),
        ErrorRate(
            "direction_known_rate",
            "Questions with a direction",
            cases="questions",
            choices=_RULE,
            higher_is_better=True,
        ),
        NO_OPTION,
    ),
    cases,
)
