"""Families of models, and the warning where a judge judges its own.

The table is data: ``families.yaml`` beside this module, or a file of the user's own in the same form.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from medtasks.errors import DataError

__all__ = ["Families", "family_of", "read_families", "same_family"]

Families = Mapping[str, tuple[re.Pattern[str], ...]]
"""Family to the patterns that find its members."""

LONGEST = 1000  # characters of a model's name or path that are looked at, from its end
SHOWN = 80
_FAMILY = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


def family_of(name: str, table: Families | None = None) -> tuple[str, ...]:
    """The families that a model's name or path tells of, sorted; none where the table does not know it.

    >>> family_of("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B")
    ('deepseek', 'qwen')
    """
    families = _shipped() if table is None else table
    end = name[-LONGEST:]
    return tuple(sorted(family for family, patterns in families.items() if any(one.search(end) for one in patterns)))


def same_family(judge: str, judged: str, table: Families | None = None) -> str | None:
    """A warning, as one sentence, where the judge is the judged model or of its family; None where nothing says so.

    The Kvasir-VQA-x1 paper (section 4.2.5) calls this homogeneity bias and asks for judges of another architecture.
    """
    shared = sorted(set(family_of(judge, table)) & set(family_of(judged, table)))
    if judge.strip().casefold() == judged.strip().casefold():
        found = f"judge {_shown(judge)} is the judged model itself"
    elif shared:
        found = (
            f"judge {_shown(judge)} and model {_shown(judged)} are of one family ({', '.join(shared)}), going by "
            "their names"
        )
    else:
        return None
    return (
        f"{found}: judges tend to favour answers of their own kind (homogeneity bias, for which the Kvasir-VQA-x1 "
        "paper asks for judges of another architecture), so use a judge of another family or several judges."
    )


def _shown(name: str) -> str:
    """A name as a terminal may show it: its end, on one line, without control characters."""
    return ascii(name if len(name) <= SHOWN else "…" + name[-SHOWN:])


@functools.cache
def _shipped() -> Families:
    return read_families(Path(__file__).with_name("families.yaml"))


def read_families(path: Path) -> Families:
    """The table in the YAML file ``path``: the name of a family, and a list of regular expressions in any case.

    Raises:
        DataError: the file cannot be read or is no such table (names family, entry, found and expected).
    """
    for family, patterns in (found := _table(path)).items():
        if not _FAMILY.fullmatch(family):
            raise DataError(
                f"{path}: family {family[:SHOWN]!r} is no name, expected small letters, digits, - and _ (40 at most); "
                "rename it."
            )
        if not isinstance(patterns, list) or not patterns:
            raise DataError(
                f"{path}: family {family} holds {str(patterns)[:SHOWN]!r}, expected a list of regular expressions; "
                "write each on a line after a dash."
            )
    return {family: tuple(_pattern(path, family, one) for one in patterns) for family, patterns in found.items()}


def _pattern(path: Path, family: str, written: Any) -> re.Pattern[str]:
    if not isinstance(written, str):
        raise DataError(
            f"{path}: family {family} holds {str(written)[:SHOWN]!r}, expected a regular expression; put it in quotes."
        )
    try:
        pattern = re.compile(written, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        raise DataError(
            f"{path}: family {family}: {written[:SHOWN]!r} is no regular expression ({error}), expected one; fix it."
        ) from error
    if pattern.search(""):
        raise DataError(
            f"{path}: family {family}: {written[:SHOWN]!r} finds every model, expected a part of the family's names; "
            "fix it."
        )
    return pattern


def _table(path: Path) -> dict[str, Any]:
    """The mapping in the file, with every value as text: ``no`` is a name here, not false."""
    try:
        loader = yaml.BaseLoader(path.read_bytes())
        try:
            node = loader.get_single_node()
            found = None if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except (OSError, yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
        said = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: not a readable YAML file ({said}); fix or restore it.") from error
    if not isinstance(node, yaml.MappingNode) or not isinstance(found, dict) or not found:
        raise DataError(f"{path}: holds no families, expected a mapping of a family to its patterns; fix the file.")
    twice = [name for name, times in Counter(str(key.value) for key, _ in node.value).items() if times > 1]
    if twice:
        raise DataError(f"{path}: family {twice[0][:SHOWN]!r} is duplicated, expected once; join the two lists.")
    return {str(key): value for key, value in found.items()}
