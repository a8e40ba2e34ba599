"""Runs with the back-ends of closed models against a server of ours that speaks their protocols."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from runs import Run

from medtasks.harness import run_tasks

sys.path.append(str(Path(__file__).parents[2] / "performance" / "backends"))
from closed_models import Answer, ClosedModels, Outcome, Question

BACK_ENDS = {
    "openai": ("openai", "model_version=m,base_url=URL/v1"),
    "async_openai": ("async_openai", "model_version=m,base_url=URL/v1,num_cpus=4"),
    "claude": ("claude", "model_version=m"),
    "gemini": ("gemini", "model=m"),
    "litellm to Anthropic": ("litellm", "model=anthropic/m,base_url=URL"),
    "litellm to Gemini": ("litellm", "model=gemini/m,base_url=URL"),
    "litellm to OpenAI": ("litellm", "model=openai/m,base_url=URL/v1"),
    "litellm to responses": ("litellm", "model=openai/responses/m,base_url=URL/v1"),
}
"""Back-ends and their arguments, by what is tested."""
PACKAGES = {"claude": "anthropic", "gemini": "google.genai", "litellm": "litellm"}
SLEEPLESS = "retry_backoff_s=0"
KEYS = {
    "OPENAI_API_KEY": "key-of-openai",
    "ANTHROPIC_API_KEY": "key-of-anthropic",
    "GEMINI_API_KEY": "key-of-gemini",
    "GOOGLE_API_KEY": "key-of-gemini",
}


def require_package(name: str) -> None:
    """Skip a test if the package of a back-end is not installed; `.ci/run` installs all."""
    package = PACKAGES.get(BACK_ENDS[name][0])
    if package is None:
        return
    try:
        is_installed = find_spec(package) is not None
    except ModuleNotFoundError:  # the package above it
        is_installed = False
    if not is_installed:
        pytest.skip(f'needs {package}: pip install "medtasks[{BACK_ENDS[name][0]}]"')


def ask(
    name: str,
    server: ClosedModels,
    tasks: Sequence[str],
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    arguments: str = SLEEPLESS,
    **settings: Any,
) -> Run:
    """A run of a back-end of `BACK_ENDS`."""
    for variable, key in KEYS.items():
        monkeypatch.setenv(variable, key)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
    model, own = BACK_ENDS[name]
    every = f"{own},{arguments}".replace("URL", server.url).rstrip(",")
    return Run(run_tasks(model, every, list(tasks), output, **settings))


class Script:
    """Decides what the server answers: each sample has its outcomes, in the order of attempts; the
    last is repeated. Samples are told apart by their prompts, in the order of their ids.
    """

    def __init__(self, outcomes: Mapping[str, Sequence[Outcome]]) -> None:
        self._outcomes = outcomes
        self.attempts = Counter[str]()
        self._lock = threading.Lock()

    def __call__(self, question: Question) -> Outcome:
        (text,) = (text for text in self._outcomes if text in question.text)
        with self._lock:
            outcomes = self._outcomes[text]
            outcome = outcomes[min(self.attempts[text], len(outcomes) - 1)]
            self.attempts[text] += 1
        return outcome


def letter(question: Question) -> Answer:
    """A letter that depends on texts and pictures."""
    return Answer("ABCDE"[int(question.key, 16) % 5])
