"""Tries every back-end that runs on a CPU with every kind of task, and writes what works into
docs/back-ends.md.

Checkpoints are tiny and built on the spot, data are the miniature ones; back-ends that call a
server call `transformers serve` on this machine, and those of closed models a server that speaks
their protocols (`closed_models.py`). A cell works where every request has a response, both stages
of a stage-wise item are there, and the responses are not those of a blind run (a model's, that is).

    pip install -e '.[benchmark,claude,gemini,litellm]' && python performance/backends/try_all.py

With names of back-ends only these are tried; what was found out about the others before is kept in
tried.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from medtasks.answers.stages import read_stages
from medtasks.scoring.run_folder import read_run

sys.path.append(str(Path(__file__).parents[2]))  # training/ is not installed
from closed_models import Answer, ClosedModels, Question
from served_checkpoint import served
from tiny_llava import build_tiny_llava

from training.tiny import build_tiny_vlm

PAGE = Path(__file__).parents[2] / "docs" / "back-ends.md"
KEPT = Path(__file__).with_name("tried.json")
BEGIN, END = "<!-- table: performance/backends/try_all.py -->", "<!-- end of table -->"
KINDS = {
    "single turn": "kvasir_vqa_x1_level1",
    "several images": "mi_cxr_icr",
    "video frames": "medstreambench_present",
    "streams": "medstreambench_future_streaming",
    "stage-wise": "mi_cxr_stagewise_icr",
}
BLIND = "blind"
WORKS = "works"
ABSENT = "not installed here"
SERVED = {"openai", "openai_compatible", "async_openai", "async_openai_compatible"}
LIMIT = 4
LONGEST = 1800  # seconds; machines may be busy


@dataclass(frozen=True)
class BackEnd:
    """A row of the table; ``answers`` says whether its responses come from a model that sees the
    media, ``packages`` are those that the vendors of closed models publish, and ``server`` is the
    address at which these packages find the models.
    """

    name: str
    arguments: str
    options: tuple[str, ...] = ()
    needs: str | None = None
    answers: bool = True
    route: str = ""
    packages: tuple[str, ...] = ()
    server: str = ""

    @property
    def label(self) -> str:
        """As users type it."""
        shown_options = [option for option in self.options if option == "--force_simple"]
        route = [self.route] if self.route else []
        return " ".join((self.name, *shown_options, *route))

    @property
    def environment(self) -> dict[str, str]:
        """Where the vendors' packages find the models, and their keys."""
        if not self.server:
            return {}
        keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"), "none")
        addresses = {"ANTHROPIC_BASE_URL": self.server, "GOOGLE_GEMINI_BASE_URL": self.server}
        return {**keys, **addresses}


@dataclass
class Row:
    """What became of each kind of task: ``works``, or why not; and the versions it was tried
    with.
    """

    cells: dict[str, str] = field(default_factory=dict)
    made: str = field(default_factory=lambda: installed())


def back_ends(
    qwen: Path, llava: Path, replayed: Path, url: str, closed: str = "http://unused"
) -> Iterator[BackEnd]:
    """All rows, in the table's order."""
    cpu, simple = ("--device", "cpu"), ("--device", "cpu", "--force_simple")
    yield BackEnd("medtasks_vlm", f"pretrained={qwen},device=cpu")
    yield BackEnd("medtasks_baseline", "policy=oracle", answers=False)
    yield BackEnd("medtasks_replay", f"path={replayed}", answers=False)
    yield BackEnd("qwen2_5_vl", f"pretrained={qwen},device_map=cpu", cpu)
    yield BackEnd("qwen2_5_vl", f"pretrained={qwen},device_map=cpu", simple)
    yield BackEnd("llava_hf", f"pretrained={llava},device_map=cpu", cpu)
    yield BackEnd("huggingface", f"pretrained={qwen},device_map=cpu", cpu)
    yield BackEnd("async_hf", f"pretrained={qwen}", cpu)
    served = f"model={qwen},base_url={url},api_key=none,timeout=120"
    yield BackEnd("openai", served)
    yield BackEnd("openai", served, ("--force_simple",))
    yield BackEnd("openai_compatible", served)
    yield BackEnd("async_openai", served)
    yield BackEnd("async_openai_compatible", served)
    yield BackEnd("vllm", f"model={qwen}", needs="vllm")
    yield from closed_back_ends(closed)


def closed_back_ends(url: str) -> Iterator[BackEnd]:
    """The rows of closed models, at the address of a server that speaks their protocols."""
    simple = ("--force_simple",)
    claude, gemini, litellm = ("anthropic",), ("google-genai",), ("litellm",)
    yield BackEnd("claude", "model_version=m", packages=claude, server=url)
    yield BackEnd("gemini", "model=m", packages=gemini, server=url)
    yield BackEnd("gemini", "model=m", simple, packages=gemini, server=url)
    for model, address in (
        ("anthropic/m", url),
        ("openai/m", f"{url}/v1"),
        ("openai/responses/m", f"{url}/v1"),
    ):
        route = f"model={model.removesuffix('m')}…"
        arguments = f"model={model},base_url={address}"
        yield BackEnd("litellm", arguments, route=route, packages=litellm, server=url)


def closed_answer(question: Question) -> Answer:
    """A response that depends on texts and pictures."""
    return Answer(f"{'ABCDE'[int(question.key, 16) % 5]} {question.key}")


def main() -> None:
    """Try all back-ends, or those named, keep what became of them, and write the table into the
    page.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("only", nargs="*", help="back-ends or rows to try (default: all)")
    only = parser.parse_args().only
    with tempfile.TemporaryDirectory(prefix="back-ends-") as folder, ExitStack() as stack:
        here = Path(folder)
        qwen, llava = (
            build_tiny_vlm(here / "tiny-qwen2.5-vl"),
            build_tiny_llava(here / "tiny-llava"),
        )
        every = list(back_ends(qwen, llava, here / "predictions.jsonl", "http://unused"))
        chosen = [
            back_end
            for back_end in every
            if not only or back_end.name in only or back_end.label in only
        ]
        labels = {back_end.label for back_end in chosen}
        serving = any(back_end.name in SERVED for back_end in chosen)
        url = stack.enter_context(served(qwen)) if serving else "http://unused"
        closed = stack.enter_context(ClosedModels(closed_answer)).url
        rows = back_ends(qwen, llava, here / "predictions.jsonl", url, closed)
        for number, back_end in enumerate(rows):
            if back_end.label not in labels:
                continue
            if back_end.name == "medtasks_replay":
                record(run(every[0], here / "recorded"), here / "predictions.jsonl")
            keep(back_end.label, tried(back_end, here / str(number)))
    order = [back_end.label for back_end in every]
    text = with_table(PAGE.read_text(encoding="utf-8"), read_kept(), order)
    PAGE.write_text(text, encoding="utf-8")


def read_kept() -> dict[str, Row]:
    """What was found out before, by label."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    return {label: Row(**row) for label, row in kept.items()}


def keep(label: str, row: Row) -> None:
    """Add a row to the file of results."""
    print(f"{label}: {row.cells}", file=sys.stderr, flush=True)
    rows = {**read_kept(), label: row}
    text = json.dumps(
        {label: asdict(rows[label]) for label in sorted(rows)}, indent=1, ensure_ascii=False
    )
    KEPT.write_text(f"{text}\n", encoding="utf-8")


def tried(back_end: BackEnd, folder: Path) -> Row:
    """Two runs of all kinds, with media and without."""
    for package in (back_end.needs, *back_end.packages):
        if package is not None and not is_installed(package):
            return Row(dict.fromkeys((*KINDS, BLIND), ABSENT))
    seen = run(back_end, folder / "seen")
    blind = run(back_end, folder / "blind", MEDTASKS_BLIND="1")
    row = Row(made=installed(back_end.packages))
    for kind, task in KINDS.items():
        reason = why_not(seen, task)
        is_compared = back_end.answers and not why_not(blind, task)
        if reason is None and is_compared and responses(seen, task) == responses(blind, task):
            reason = "its responses are the same without media"
        row.cells[kind] = reason or WORKS
    reasons = filter(None, (why_not(blind, task) for task in KINDS.values()))
    row.cells[BLIND] = next(reasons, WORKS)
    return row


def is_installed(package: str) -> bool:
    """Whether a distribution is installed here."""
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


@dataclass(frozen=True)
class Ended:
    """A run: its result folder, or what the process said last."""

    folder: Path | None
    exit_code: int
    last: str


def run(back_end: BackEnd, output: Path, **environment: str) -> Ended:
    """One command, as users type it."""
    model = ("--model", back_end.name, "--model_args", back_end.arguments, *back_end.options)
    tasks = ("--tasks", ",".join(KINDS.values()), "--limit", str(LIMIT))
    rest = ("--gen_kwargs", "max_new_tokens=8", "--output_path", str(output))
    command = [sys.executable, "-m", "lmms_eval", *model, *tasks, *rest]
    settings = {**os.environ, "MEDTASKS_DATA": "mini", "HF_HUB_OFFLINE": "1"}
    settings |= {**back_end.environment, **environment}
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=LONGEST)
    folders = sorted(output.rglob("*_medtasks"))
    ours = [line for line in done.stderr.splitlines() if line.startswith("medtasks: ")]
    last = (ours or done.stderr.strip().splitlines() or ["no output"])[-1]
    return Ended(folders[-1] if folders else None, done.returncode, last.removeprefix("medtasks: "))


def why_not(ended: Ended, task: str) -> str | None:
    """Why a task of the run does not count as working, in one phrase; None where it works."""
    if ended.folder is None:
        return phrase(ended.last)
    facts = read_run(ended.folder)[0].tasks.get(task)
    if facts is None:
        return "the task was not run"
    if facts.failed:
        return phrase(max(facts.failed, key=lambda why: facts.failed[why]))
    if task == KINDS["stage-wise"]:
        for text in responses(ended, task):
            if not all(read_stages(text)):
                return "a stage has no text"
    return None


def responses(ended: Ended, task: str) -> list[str]:
    """The responses of one task."""
    if ended.folder is None:
        return []
    texts: list[str] = []
    for sample in read_run(ended.folder)[1].get(task, ()):
        texts += sample.responses
    return texts


def record(ended: Ended, path: Path) -> None:
    """Write the responses of a run as predictions to replay."""
    if ended.folder is None:
        raise SystemExit(f"nothing to replay: {ended.last}")
    lines = []
    for task, samples in read_run(ended.folder)[1].items():
        for sample in samples:
            response = sample.responses[0]
            row = {"task": task, "sample_id": sample.sample_id, "response": response}
            lines.append(f"{json.dumps(row)}\n")
    path.write_text("".join(lines), encoding="utf-8")


def installed(packages: tuple[str, ...] = ()) -> str:
    """What the back-ends are made of here; ``packages`` if they run no model themselves."""
    names = ("lmms-eval", *(packages or ("transformers", "torch", "openai")))
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    return f"{versions}, Python {platform.python_version()}"


def phrase(reason: str) -> str:
    """A reason on one line, without folders of this machine."""
    text = re.sub(r"(?<![\w.])/(?:[\w.+-]+/)*([\w.+-]+)", r"\1", " ".join(reason.split()))
    return text.replace("|", "/").rstrip(".")


def with_table(page: str, rows: dict[str, Row], order: list[str]) -> str:
    """The page with this table in the place of its own."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{drawn(rows, order)}{END}{rest.partition(END)[2]}"


def drawn(rows: dict[str, Row], order: list[str]) -> str:
    """The table in Markdown, reasons below it."""
    kinds = (*KINDS, BLIND)
    ordered = {label: rows[label] for label in order if label in rows}
    numbers: dict[str, int] = {}
    lines = [f"| `--model` | {' | '.join(kinds)} |", f"|---|{'---|' * len(kinds)}"]
    for label, row in ordered.items():
        cells = []
        for kind in kinds:
            text = row.cells[kind]
            if text not in (WORKS, ABSENT):
                text = f"no ({numbers.setdefault(text, len(numbers) + 1)})"
            cells.append(text)
        lines.append(f"| `{label}` | {' | '.join(cells)} |")
    lines.append("")
    if numbers:
        lines += [f"{number}. {reason}." for reason, number in numbers.items()]
        lines.append("")
    made = "; ".join(dict.fromkeys(row.made for row in ordered.values()))
    return "\n".join([*lines, f"Tried on a CPU with {made}.", ""])


if __name__ == "__main__":
    main()
