"""``docs/options.md`` lists every option of lmms-eval; each is run with one of our tasks, and does
what it says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from command import OTHER_ROWS, TASK, Ended, lmms_eval, other_task

from medtasks.benchmarks.documents import task_documents
from medtasks.core.errors import UsageError
from medtasks.harness.command_line import check_command

PAGE = Path(__file__).parents[2] / "docs" / "options.md"
_ROW = re.compile(r"\| `(--[\w-]+)` \| (works|refused|no effect|not tested) \| (.+) \|")
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Row:
    """What the page says about an option."""

    option: str
    outcome: str
    details: str


ROWS = [Row(*cells) for cells in _ROW.findall(PAGE.read_text(encoding="utf-8"))]


def options_that(outcome: str) -> set[str]:
    return {row.option for row in ROWS if row.outcome == outcome}


def test_the_page_has_every_option_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from lmms_eval.__main__ import parse_eval_args

    monkeypatch.setattr("sys.argv", ["lmms-eval"])
    parser, _ = parse_eval_args()
    every = [action.option_strings for action in parser._actions if action.dest != "help"]
    listed = [row.option for row in ROWS]
    assert len(listed) == len({*listed})
    missing = [names for names in every if not {*names} & {*listed}]
    assert not missing
    assert len(listed) == len(every)


# --- refused ---

REFUSED: dict[str, tuple[str, ...]] = {
    "--apply_chat_template": (),
    "--baseline": ("qwen25vl",),
    "--cache_requests": ("true",),
    "--check_integrity": (),
    "--fewshot_as_multiturn": (),
    "--launcher_args": ("name=sglang,tp=1",),
    "--max_tokens": ("1000",),
    "--num_fewshot": ("1",),
    "--reasoning_tags": ('[["<a>", "</a>"]]',),
    "--swanlab_log_samples": (),
    "--use_cache": ("cache",),
}
"""Options that the page calls refused, with a value."""


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.outcome == "refused"], ids=lambda row: row.option
)
def test_a_refused_option_ends_the_command_with_what_to_use_instead(row: Row) -> None:
    task = "mi_cxr" if row.option == "--num_fewshot" else TASK  # which has tasks with examples
    with pytest.raises(UsageError) as refused:
        check_command(["--tasks", task, row.option, *REFUSED[row.option]])
    sentence = str(refused.value)
    assert sentence.startswith(row.option)
    assert not [instead for instead in _CODE.findall(row.details) if instead not in sentence]


def test_samples_are_not_pushed_to_the_hub_with_the_whole_directory() -> None:
    with pytest.raises(UsageError, match="push_samples_to_hub"):
        check_command(
            ["--tasks", TASK, "--hf_hub_log_args", "push_samples_to_hub=True,hub_results_org=us"]
        )


@pytest.mark.slow
def test_a_refusal_has_exit_code_2_and_no_traceback(python: Any, tmp_path: Path) -> None:
    ended = lmms_eval(python, tmp_path, "--baseline", "qwen25vl")
    assert ended.code == 2
    assert ended.sentence.startswith("medtasks: --baseline is not supported")
    assert "Traceback" not in ended.out + ended.err
    assert not ended.output.exists()


# --- without effect ---

WITHOUT_EFFECT: dict[str, tuple[str, ...]] = {
    "--agentic_trace_mode": ("full",),
    "--force_simple": (),
    "--log_samples_suffix": ("mine",),
    "--max_batch_size": ("4",),
    "--process_docs_parallel": ("1",),
    "--process_with_media": (),
    "--trust_remote_code": (),
}
"""Options that the page says change nothing, with a value that is not their default."""


@pytest.mark.slow
def test_options_without_effect_are_named_and_change_nothing(python: Any, tmp_path: Path) -> None:
    given = [word for option, value in WITHOUT_EFFECT.items() for word in (option, *value)]
    with_them = lmms_eval(python, tmp_path / "with", *given)
    plain = lmms_eval(python, tmp_path / "without")
    assert (with_them.code, plain.code) == (0, 0)
    (named,) = [
        line
        for line in with_them.err.splitlines()
        if "without effect on tasks of medtasks: " in line
    ]
    assert {*named.partition("medtasks: ")[2].rpartition(": ")[2].split(", ")} == {*WITHOUT_EFFECT}
    assert "without effect" not in plain.err
    assert with_them.run.files() == plain.run.files()


# --- those that work ---


@dataclass(frozen=True)
class Case:
    """One command, the options that it is about, and what has to be true of how it ended."""

    options: tuple[str, ...]
    arguments: tuple[str, ...]
    check: Callable[[Ended], None]
    environment: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    """Name and content of files in the working directory."""


def accuracy(ended: Ended) -> Any:
    return ended.run.scores[TASK]["metrics"]["accuracy"]["value"]


def check_plain(ended: Ended) -> None:
    assert accuracy(ended) == 1
    assert task_documents(TASK)[0]["question"] in ended.out
    assert ended.run.manifest["model"]["policy"] == "oracle"


def check_many(ended: Ended) -> None:
    """What one command does with options that do not depend on each other."""
    documents = task_documents(TASK)
    run, settings = ended.run, ended.run.manifest["settings"]
    assert [one["sample_id"] for one in run.samples(TASK)] == sorted(
        one["sample_id"] for one in documents[3:5]
    )
    assert [settings[f"{kind}_seed"] for kind in ("random", "numpy", "torch", "fewshot")] == [
        5,
        6,
        7,
        8,
    ]
    assert (settings["batch_size"], settings["device"]) == ("2", "cpu")
    assert run.manifest["tasks"][TASK]["generation"]["max_new_tokens"] == 7
    warning = "warning: temperature 0.7 has no effect, because do_sample is false"
    assert warning in ended.err
    assert warning in ended.out
    assert "INFO" not in ended.out
    assert '"configs": {' in ended.out
    assert run.folder.name.endswith("+0530_medtasks")
    (log,) = ended.output.rglob("*_samples_*.jsonl")
    logged = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [one["accuracy"] for one in logged] == [1, 1]
    assert log.name.startswith(run.folder.name[:15])


def check_configured(ended: Ended) -> None:
    folders = sorted(ended.output.rglob("*_medtasks"))
    counts = [
        len((folder / "samples" / f"{TASK}.jsonl").read_text().splitlines()) for folder in folders
    ]
    assert sorted(counts) == [1, 2]
    assert "|included_task" in ended.out


def check_repeats(ended: Ended) -> None:
    samples = ended.run.samples(TASK)
    assert {len(sample["responses"]) for sample in samples} == {2}
    assert f"n={len(samples)} ({2 * len(samples)} responses) " in " ".join(ended.out.split())


def check_unscored(ended: Ended) -> None:
    assert not [*ended.output.rglob("*_medtasks")]
    assert "not scored (--predict_only)" in ended.out


def check_instructed(ended: Ended) -> None:
    (sample,) = ended.run.samples(TASK)
    assert sample["prompt"].startswith("Be brief.\n\n")
    assert "system_instruction" in ended.run.manifest["tasks"][TASK]["presentation"]


def check_power(ended: Ended) -> None:
    assert "Effect size (delta):     10.0%" in ended.out
    assert "Significance level (α):  0.01" in ended.out
    assert "Desired power (1-β):     0.9" in ended.out
    assert "Correlation (ρ):         0.4" in ended.out
    assert f"{TASK}:\n    Sample size:         n = {len(task_documents(TASK))}" in ended.out


def check_wandb(ended: Ended) -> None:
    tables = {
        path.name.rsplit("_", 2)[0]
        for path in (ended.output.parent / "wandb").rglob("*.table.json")
    }
    assert {"medtasks_scores", f"{TASK}_eval_results"} <= tables


def check_swanlab(ended: Ended) -> None:
    logged = (ended.output.parent / "swanlab.log").read_text(encoding="utf-8")
    assert f"{TASK}/accuracy,medtasks': 1" in logged


EVALUATIONS = """
- {limit: 1}
- {limit: 2}
"""
SWANLAB = """
# stands in for the package, whose server is not here
class Run:
    config = {}
    def log(self, values):
        with open("swanlab.log", "a") as file:
            file.write(repr(values))
def init(**settings):
    return Run()
def get_run():
    return None
def finish():
    pass
"""
TINY = (
    "--model",
    "medtasks_vlm",
    "--model_args",
    "pretrained=tiny,device=cpu,max_new_tokens=4",
    "--limit",
    "1",
)
CASES = {
    "plain": Case(
        ("--tasks", "--model", "--model_args", "--output_path", "--write_out"),
        ("--write_out",),
        check_plain,
    ),
    "many": Case(
        ("--limit", "--offset", "--seed", "--batch_size", "--device", "--gen_kwargs", "--verbosity", "--show_config",
         "--timezone", "--log_samples", "--hf_hub_log_args"),
        ("--limit", "2", "--offset", "3", "--seed", "5,6,7,8", "--batch_size", "2", "--device", "cpu", "--gen_kwargs",
         "max_new_tokens=7,temperature=0.7,do_sample=false", "--verbosity", "WARNING", "--show_config",
         "--timezone", "Asia/Kolkata", "--log_samples", "--hf_hub_log_args", "point_of_contact=us"),
        check_many,
    ),
    "files": Case(
        ("--config", "--include_path"),
        ("--config", "runs.yaml", "--include_path", "more", "--tasks", f"{TASK},included_task"),
        check_configured,
        files=(("runs.yaml", EVALUATIONS), ("more/included.yaml", other_task("included_task", "rows.json")),
               ("rows.json", OTHER_ROWS)),
    ),
    "repeats": Case(("--repeats",), ("--repeats", "2"), check_repeats),
    "predictions": Case(("--predict_only",), ("--predict_only",), check_unscored),
    "instruction": Case(("--system_instruction",), (*TINY, "--system_instruction", "Be brief."), check_instructed),
    "power": Case(
        ("--power-analysis", "--effect-size", "--alpha", "--power", "--correlation", "--std-a", "--std-b"),
        ("--power-analysis", "--effect-size", "0.1", "--alpha", "0.01", "--power", "0.9", "--correlation", "0.4",
         "--std-a", "0.4", "--std-b", "0.3"),
        check_power,
    ),
    "wandb": Case(
        ("--wandb_args", "--wandb_log_samples"),
        ("--wandb_args", "project=test", "--wandb_log_samples", "--log_samples"),
        check_wandb,
        environment=(("WANDB_MODE", "offline"), ("WANDB_SILENT", "true")),
    ),
    "swanlab": Case(
        ("--swanlab_args",),
        ("--swanlab_args", "project=test"),
        check_swanlab,
        environment=(("PYTHONPATH", "."),),
        files=(("swanlab.py", SWANLAB),),
    ),
}  # fmt: skip


def test_every_option_of_the_page_is_run() -> None:
    assert options_that("refused") == {*REFUSED}
    assert options_that("no effect") == {*WITHOUT_EFFECT}
    assert options_that("works") == {option for case in CASES.values() for option in case.options}
    assert options_that("not tested") == {"--tui"}  # opens a browser


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_option_that_works_does_what_the_page_says(
    case: Case, python: Any, tmp_path: Path
) -> None:
    for name, content in case.files:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    ended = lmms_eval(python, tmp_path, *case.arguments, **dict(case.environment))
    assert ended.code == 0, ended.err[-3000:]
    case.check(ended)
