"""Contain the output, exceptions and duration of imports of other packages' code.

This does not protect against hostile code: installing a package means running it. It keeps a faulty package from
breaking everything else: its standard output goes to standard error, labelled with its name; any exception, even
`SystemExit`, becomes a :class:`MedtasksError` with file and line; an import that takes too long is stopped. A call into
C code that never returns and code that exits the process cannot be contained.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ExtensionFileLoader, ModuleSpec, SourceFileLoader, SourcelessFileLoader
from pathlib import Path
from types import FrameType, MappingProxyType, ModuleType
from typing import Any, NamedTuple

from medtasks.errors import MedtasksError, UsageError, first_line
from medtasks.text import one_line

VARIABLE = "MEDTASKS_IMPORT_SECONDS"
"""Environment variable: seconds after which the import of a package is stopped."""

LONGEST = 60.0
"""Default limit in seconds; :data:`VARIABLE` overrides it."""


class Guarded(NamedTuple):
    """A module's owner and the directory of its code."""

    owner: str
    folder: Path


def guard_imports(modules: Mapping[str, Guarded]) -> None:
    """Guard all later imports of ``modules``, their parents and their submodules."""
    _FINDER.modules = dict(modules)
    if modules and _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


class _Finder(MetaPathFinder):
    """Finds modules through the other finders, and guards their execution."""

    modules: Mapping[str, Guarded] = MappingProxyType({})

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        owner = next((one.owner for module, one in self.modules.items() if _belongs(name, module)), None)
        if owner is None:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if finder is self or find is None else find(name, path, target)
            if spec is None:
                continue
            loader: Any = spec.loader
            if isinstance(loader, _OF_ONE_MODULE):
                execute = functools.partial(_guarded, owner, loader.exec_module)
                loader.exec_module = execute  # type: ignore[method-assign]
            return spec
        return None


_FINDER = _Finder()

_OF_ONE_MODULE = (SourceFileLoader, SourcelessFileLoader, ExtensionFileLoader)
"""Loaders that belong to a single module."""


def _belongs(name: str, module: str) -> bool:
    return name == module or name.startswith(f"{module}.") or module.startswith(f"{name}.")


_BUSY = threading.local()
_ENDED: dict[str, str] = {}
"""Modules whose import was stopped, with the reason: they are not tried again."""


def _guarded(owner: str, execute: Callable[[ModuleType], None], module: ModuleType) -> None:
    """Execute a module under guard, unless it is imported by a module already under guard."""
    if getattr(_BUSY, "busy", False):
        execute(module)
        return
    if module.__name__ in _ENDED:
        raise MedtasksError(_ENDED[module.__name__])
    seconds = _limit()
    _BUSY.busy = True
    try:
        with _output_named(owner), _ended_after(seconds), _interrupts() as pressed:
            try:
                execute(module)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt) and pressed:
                    raise
                why = _why(module, error, seconds)
                if isinstance(error, _TooSlowError):
                    _ENDED[module.__name__] = why
                raise MedtasksError(why) from error
    finally:
        _BUSY.busy = False


def _limit() -> float:
    given = os.environ.get(VARIABLE, "").strip()
    try:
        seconds = float(given) if given else LONGEST
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise UsageError(f"{VARIABLE} is {given!r}, expected a number of seconds above 0.")
    return seconds


def _why(module: ModuleType, error: BaseException, seconds: float) -> str:
    if isinstance(error, _TooSlowError):
        why = f"it took more than {seconds:g} s; fix it, or raise {VARIABLE}"
    else:
        why = f"{first_line(error)[:300].rstrip('.')}; fix or uninstall it"
    return f"{module.__name__} cannot be imported {raised_in(error)}: {why}."


def raised_at(error: BaseException) -> tuple[str, int] | None:
    """File and line of the last frame of ``error`` in a guarded package's code; None if there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno or 1
    folders = tuple(guarded.folder for guarded in _FINDER.modules.values())
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [one for one in frames if any(Path(one.filename).is_relative_to(folder) for folder in folders)]
    return (theirs[-1].filename, theirs[-1].lineno or 1) if theirs else None


def raised_in(error: BaseException) -> str:
    """Where ``error`` was raised, in parentheses: :func:`raised_at`, or else the last frame."""
    frames = traceback.extract_tb(error.__traceback__)[-1:]
    place = raised_at(error) or next(((one.filename, one.lineno) for one in frames), None)
    return f"({place[0]}, line {place[1]})" if place else "(place unknown)"


class _TooSlowError(BaseException):
    """Not an `Exception`, because the package might catch those."""


@contextlib.contextmanager
def _ended_after(seconds: float) -> Iterator[None]:
    """Raise in the block after ``seconds``; only in the main thread, on POSIX."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise _TooSlowError

    before = signal.signal(signal.SIGALRM, ring)
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left, interval)  # an alarm that was set before is only delayed
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Record whether the user pressed Ctrl-C in the block: a package may raise `KeyboardInterrupt` itself."""
    pressed: list[int] = []
    handler: Any = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield pressed
        return

    def note(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, handler)


@contextlib.contextmanager
def _output_named(owner: str) -> Iterator[None]:
    """Print what the block writes to the process's standard output on standard error, as one line.

    `sys.stdout` itself is not replaced: a package may keep a reference to it for its log.
    """
    with tempfile.TemporaryFile() as captured:
        _flush()
        try:
            kept = os.dup(1)
        except OSError:  # standard output is closed
            yield
            return
        os.dup2(captured.fileno(), 1)
        try:
            yield
        finally:
            _flush()
            os.dup2(kept, 1)
            os.close(kept)
            captured.seek(0)
            output = one_line(captured.read(2000).decode("utf-8", "replace"))[:300]
            if output:
                print(f"medtasks: {owner} printed during import: {output}", file=sys.stderr, flush=True)


def _flush() -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):  # closed or missing
        sys.stdout.flush()
