"""Render untrusted templates in a sandbox, with limits on ranges, length and time.

Within :func:`isolated`, templates that are not ours are rendered in a separate process. It is killed if a template
takes too much time or memory; the next template is rendered in a new process.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from concurrent.futures import TimeoutError as TimedOut
from contextvars import ContextVar
from itertools import islice
from pathlib import Path
from typing import Any

from jinja2 import BaseLoader, Environment, StrictUndefined, Template, TemplateError, TemplateNotFound, meta, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.sandbox import ImmutableSandboxedEnvironment

from medtasks.errors import MedtasksError

Renderer = Callable[[str, Mapping[str, Any]], str]
"""Takes the name of a template and its variables, and returns the text."""

MOST_NUMBERS = 100_000
"""Maximum total length of all ``range`` calls of one prompt."""

MOST_TEXT = 4_000_000
"""Maximum length of a prompt, in characters."""

SECONDS = 10.0
"""Time limit of one prompt; most take a millisecond."""

SECONDS_IN_ALL, SECONDS_A_PROMPT = 20.0, 0.1
"""A template is given up once its prompts exceed both times: all together, and on average."""

MEMORY = 2**30
"""Bytes that the rendering process may allocate beyond those it starts with."""

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
        raise HopelessError(f"{_template_label(template.name)}: it takes too much memory.") from error
    except _TooSlowError as error:
        raise HopelessError(f"{_template_label(template.name)}: {error}.") from error
    except (TemplateError, _LimitError) as error:
        raise MedtasksError(f"{_template_label(template.name)}: {error}.") from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise MedtasksError(f"{_template_label(template.name)}: {type(error).__name__}: {error}.") from error
    finally:
        _LEFT.reset(token)


class HopelessError(MedtasksError):
    """A template takes so much time or memory that it should not be rendered again."""


class _LimitError(Exception):
    """A prompt is too long, or its ranges are."""


class _TooSlowError(Exception):
    """A prompt takes too long."""


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


def _template_label(template: str | None) -> str:
    return f"template {template!r} cannot be rendered"


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
            raise _TooSlowError(f"it takes more than {SECONDS:g} s")
    return "".join(kept)


_WORKER: ContextVar[Worker | None] = ContextVar("worker", default=None)


def worker() -> Worker | None:
    """The process that renders others' templates in this context; None outside :func:`isolated`."""
    return _WORKER.get()


@contextlib.contextmanager
def isolated(render: Renderer) -> Iterator[None]:
    """Render others' templates with ``render`` in a separate process within the block."""
    if worker() is not None:
        yield
        return
    made = Worker(render)
    token = _WORKER.set(made)
    try:
        yield
    finally:
        _WORKER.reset(token)
        made.end()


class Worker:
    """A rendering process, started on first use and again after it was killed."""

    def __init__(self, render: Renderer) -> None:
        self._render = render
        self._pool: ProcessPoolExecutor | None = None
        self._hopeless: dict[str, str] = {}
        self._taken: dict[str, tuple[int, float]] = {}

    def __call__(self, template: str, variables: Mapping[str, Any]) -> str:
        """The text of ``template``; a template whose process was killed is not tried again."""
        if template in self._hopeless:
            raise HopelessError(self._hopeless[template])
        start = time.monotonic()
        try:
            return self._started().submit(self._render, template, dict(variables)).result(SECONDS)
        except TimedOut as error:
            self.end()
            raise self._given_up(template, f"it takes more than {SECONDS:g} s.") from error
        except BrokenExecutor as error:
            self.end()
            raise self._given_up(template, "its process ended (too much memory, or too deep a recursion).") from error
        except HopelessError as error:
            self._hopeless[template] = str(error)
            raise
        except MedtasksError:
            raise
        except Exception as error:
            raise MedtasksError(f"{_template_label(template)}: {type(error).__name__}: {error}.") from error
        finally:
            if template not in self._hopeless and self._is_too_slow(template, time.monotonic() - start):
                self._given_up(template, "it took too long for too many prompts.")

    def _given_up(self, template: str, why: str) -> HopelessError:
        self._hopeless[template] = f"{_template_label(template)}: {why}"
        return HopelessError(self._hopeless[template])

    def _is_too_slow(self, template: str, seconds: float) -> bool:
        """Whether a template takes too much time altogether, after a prompt that took ``seconds``."""
        prompts, total = self._taken.get(template, (0, 0.0))
        self._taken[template] = prompts, total = prompts + 1, total + seconds
        return total > SECONDS_IN_ALL and total / prompts > SECONDS_A_PROMPT

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # forking is fast and shares loaded modules; it is not safe on other systems
            context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
            self._pool = ProcessPoolExecutor(1, context, _prepare_process)
        return self._pool

    def end(self) -> None:
        """Kill the process."""
        if self._pool is not None:
            for process in list((self._pool._processes or {}).values()):
                process.kill()
            self._pool.shutdown()
            self._pool = None


def _prepare_process() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    _limit_memory()
    _WORKER.set(None)


def _limit_memory() -> None:
    """Limit this process to :data:`MEMORY` beyond its current size, if the system reports that."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        limit = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY
        if most == resource.RLIM_INFINITY or limit < most:
            resource.setrlimit(resource.RLIMIT_AS, (limit, most))
