"""Render untrusted templates in a sandbox, with limits on ranges, length and time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, MutableMapping
from contextvars import ContextVar
from itertools import islice
from typing import Any

from jinja2 import BaseLoader, Environment, StrictUndefined, Template, TemplateError, TemplateNotFound, meta, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.sandbox import ImmutableSandboxedEnvironment

from medtasks.core.errors import MedtasksError

MOST_NUMBERS = 100_000
"""Maximum total length of all ``range`` calls of one prompt."""

MOST_TEXT = 4_000_000
"""Maximum length of a prompt, in characters."""

SECONDS = 10.0
"""Time limit of one prompt; most take a millisecond."""

_BETWEEN_LOOKS = 64  # parts of a prompt: expressions, and the texts between them
_LEFT: ContextVar[list[int]] = ContextVar("left")


class _Environment(ImmutableSandboxedEnvironment):
    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        """One dict instead of a ``ChainMap``, because Jinja copies it for every prompt."""
        return {**self.globals, **(d or {})}


def environment(loader: BaseLoader) -> ImmutableSandboxedEnvironment:
    """An environment for templates of ``loader``."""
    made = _Environment(
        loader=loader,
        undefined=StrictUndefined,  # an unknown variable is an error instead of empty text
        trim_blocks=True,
        autoescape=False,
        auto_reload=False,  # would check the file for every prompt, and change prompts within a run
        optimized=False,  # would compute constants such as 9 ** 9 ** 9 when a template is only parsed
    )
    made.globals["range"] = _range
    del made.globals["lipsum"], made.filters["random"]  # one prompt hash must mean one prompt
    return made


def _range(*ends: int) -> range:
    """``range``, within what is left of :data:`MOST_NUMBERS`."""
    numbers = range(*ends)
    left = _LEFT.get()
    left[0] -= len(numbers)
    if left[0] < 0:
        raise _LimitError(f"its ranges produce more than {MOST_NUMBERS:,} numbers")
    return numbers


def rendered(template: Template, variables: Mapping[str, Any]) -> str:
    """The text of ``template``, without trailing whitespace.

    Raises:
        TemplateNotFound: it includes one that does not exist.
        MedtasksError: it is too long, takes too long, uses an unknown variable, or fails otherwise.
    """
    token = _LEFT.set([MOST_NUMBERS])
    try:
        return _within_limits(template.generate(variables)).rstrip()
    except TemplateNotFound:
        raise
    except MemoryError as error:
        raise MedtasksError(f"template {template.name!r} cannot be rendered: it takes too much memory.") from error
    except (TemplateError, _LimitError) as error:
        raise MedtasksError(f"template {template.name!r} cannot be rendered: {error}.") from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise MedtasksError(f"template {template.name!r} cannot be rendered: {problem}.") from error
    finally:
        _LEFT.reset(token)


class _LimitError(Exception):
    """A prompt is too long or takes too long, or its ranges are too long."""


def undeclared_variables(tree: nodes.Template) -> set[str]:
    """Names of the variables that a template needs; unlike Jinja's own function, this evaluates no constants."""
    tracker = _Tracker(tree.environment)
    tracker.visit(tree)
    return tracker.undeclared_identifiers


class _Tracker(meta.TrackingCodeGenerator):
    def __init__(self, environment: Environment | None) -> None:
        assert environment is not None  # parsing set it
        CodeGenerator.__init__(self, environment, "<introspection>", "<introspection>", optimized=False)
        self.undeclared_identifiers: set[str] = set()

    def visit_Output(self, node: nodes.Output, frame: Frame) -> None:
        for child in node.nodes:
            self.visit(child, frame)


def _within_limits(parts: Iterator[str]) -> str:
    kept: list[str] = []
    size, start = 0, None
    while block := list(islice(parts, _BETWEEN_LOOKS)):
        kept += block
        size += sum(map(len, block))
        if size > MOST_TEXT:
            raise _LimitError(f"it is longer than {MOST_TEXT:,} characters")
        now = time.thread_time()  # CPU time, so that a busy machine does not matter
        start = now if start is None else start
        if now - start > SECONDS:
            raise _LimitError(f"it takes more than {SECONDS:g} s")
    return "".join(kept)
