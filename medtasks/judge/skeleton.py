"""Prompts of one rubric differ in a few texts: the rest is rendered once, with slots for these."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import Any

from jinja2 import Environment, meta, nodes

from medtasks.prompts import render, template_source

__all__ = ["Skeleton", "has_slots"]

_SLOT = re.compile("\0(.*?)\0")
_TRANSPARENT = (nodes.Output, nodes.Include, nodes.For, nodes.If)  # statements that leave a text in them as it is


def has_slots(template: str, names: Set[str]) -> bool:
    """Whether ``template`` and all it includes show the variables ``names`` as they are and do nothing else with them.

    Then no condition, loop, filter or macro can depend on them, and another value changes nothing but itself.

    Raises:
        UsageError: there is no such template.
        TemplateSyntaxError: it is malformed.
    """
    waiting, seen = [template], {template}
    while waiting:
        tree = Environment().parse(template_source(waiting.pop()))
        if not all(isinstance(one, _TRANSPARENT) for one in tree.find_all(nodes.Stmt)):
            return False
        shown = sum(_is(part, names) for output in tree.find_all(nodes.Output) for part in output.nodes)
        if shown != sum(one.name in names for one in tree.find_all(nodes.Name)):
            return False
        included = set(meta.find_referenced_templates(tree))
        if None in included:
            return False  # by a computed name
        fresh = {str(name) for name in included} - seen
        seen |= fresh
        waiting += fresh
    return True


def _is(part: nodes.Node, names: Set[str]) -> bool:
    return isinstance(part, nodes.Name) and part.ctx == "load" and part.name in names


class Skeleton:
    """``template``, for which `has_slots` holds, rendered with all ``fixed`` variables and slots for ``names``.

    Raises:
        MedtasksError: as :func:`medtasks.prompts.render`.
    """

    def __init__(self, template: str, names: Set[str], fixed: Mapping[str, Any]) -> None:
        text = render(template, **fixed, **{name: f"\0{name}\0" for name in names})
        self._parts = _SLOT.split(text)  # text and name in turn

    def filled(self, texts: Mapping[str, str]) -> str:
        """What :func:`medtasks.prompts.render` gives with ``texts`` as the values of the slots."""
        parts = self._parts.copy()
        parts[1::2] = [texts[name] for name in parts[1::2]]
        return "".join(parts).rstrip()
