"""A scaffolded package, broken in forty ways: what `medtasks validate` prints of each is in `breaks.txt`.

One cause is at most two lines of errors, the first with file, line, what was found and how to fix it. To write the
file again after a change of the wording: ``MEDTASKS_WRITE_BREAKS=1 pytest tests/validate/test_validation_breaks.py``.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import medtasks.templates
import pytest

from medtasks.catalog.contents import fresh
from medtasks.cli.app import main
from medtasks.cli.scaffold import write_package

GOLDEN = Path(__file__).parent / "breaks.txt"
MODULE = "acme_bench"
OURS = medtasks.templates.__path__[0]
TASKS = "tasks/acme_dots/"
BASE, NUMBER, SHAPE = f"{TASKS}_base.yaml", f"{TASKS}acme_dots_number.yaml", f"{TASKS}acme_dots_shape.yaml"
CIRCULAR, PROMPTS = f"{TASKS}acme_dots_shape_circular.yaml", f"{TASKS}acme_dots_shape_prompts.yaml"
GROUP, TEMPLATE = f"{TASKS}groups/acme_dots.yaml", f"templates/{MODULE}/question.j2"
CODE, MINI = "benchmark.py", "mini.py"
SCORE, RECORD = 'process_results = scored_by("accuracy")', "    record=Question,"
LAMBDA = 'process_results = lambda doc, results: scored_by("accuracy")'
LOWER = '{**record.model_dump(mode="json"), "target": record.answer.lower(), "abstention": "[none]"}'
WITH_LAYOUT = """from medtasks.api import BoardLayout, Column

LAYOUT = BoardLayout("acme_dots", (Column("acme_dots", "acuracy", "Accuracy"),))
PLUGIN = Plugin(layouts=(LAYOUT,), """
BAD_PICTURE = '(folder / path).write_text("?")'

BREAKS: dict[str, tuple[str, str, str]] = {
    "wrong indent in the shared part": (BASE, "  temperature: 0", " temperature: 0"),
    "tab for indentation": (NUMBER, "  version: 1.0", "\tversion: 1.0"),
    "missing include": (NUMBER, "_base.yaml", "_bass.yaml"),
    "misspelt key": (NUMBER, "output_type:", "ouput_type:"),
    "misspelt metadata key": (NUMBER, "  title:", "  titel:"),
    "value of the wrong type": (BASE, "max_new_tokens: 4096", "max_new_tokens: many"),
    "temperature without sampling": (BASE, "temperature: 0", "temperature: 0.7"),
    "name of another task": (NUMBER, "task: acme_dots_number", "task: acme_dots_numbers"),
    "unknown member": (GROUP, "- acme_dots_number", "- acme_dots_numbers"),
    "unknown pooled metric": (GROUP, "pooled: [acme_bench_too_high", "pooled: [acme_bench_too_hgh"),
    "unknown breakdown": (GROUP, "breakdowns: [topic]", "breakdowns: [topics]"),
    "unknown benchmark": (NUMBER, "benchmark: acme_dots", "benchmark: acme_dotz"),
    "misspelt rows": (NUMBER, "benchmark.number", "benchmark.numbers"),
    "misspelt function in the shared part": (BASE, "benchmark.process_results", "benchmark.process_result"),
    "misspelt filter": (BASE, "answers.OptionLetterFilter", "answers.OptionLettersFilter"),
    "misspelt metric": (BASE, "metric: accuracy", "metric: acuracy"),
    "direction reversed": (BASE, "higher_is_better: true", "higher_is_better: false"),
    "missing template": (BASE, "question.j2", "questions.j2"),
    "misspelt variable": (TEMPLATE, "{{ question }}", "{{ questoin }}"),
    "gold answer in the template": (TEMPLATE, "{{ question }}", "{{ question }} {{ target }}"),
    "unclosed block": (TEMPLATE, "{% endfor %}", ""),
    "options not shown": (TEMPLATE, "{{ letter }}. {{ choices[letter] }}", "{{ letter }}"),
    "division by zero in the template": (TEMPLATE, "{{ question }}", "{{ question }} {{ 1 / 0 }}"),
    "rotations of nothing": (CIRCULAR, "  compare_with: acme_dots_shape\n", ""),
    "prompts that are the same": (PROMPTS, "question_2.j2", "question.j2"),
    "error without an answer": (SHAPE, "      answer_other_than: bar  # the error: another option is selected\n", ""),
    "error that no question has": (SHAPE, "gold: bar ", "gold: bars "),
    "cluster key that no document has": (BASE, "cluster_key: cluster", "cluster_key: patient"),
    "syntax error in the code": (CODE, "-> Iterator[Case]:", "-> Iterator[Case]"),
    "missing import": (CODE, "from collections.abc import Iterator", "import no_such_module"),
    "exit at import": (CODE, 'NAME = "acme_dots"', 'raise SystemExit("no licence")'),
    "board layout with a misspelt metric": ("__init__.py", "PLUGIN = Plugin(", WITH_LAYOUT),
    "plugin of another name": ("__init__.py", "PLUGIN =", "PLUG_IN ="),
    "documents that fail": (CODE, RECORD, f"    documents=lambda record: [record.gold],\n{RECORD}"),
    "documents that are none": (CODE, RECORD, f"    documents=lambda record: [],\n{RECORD}"),
    "rows that fail": (CODE, 'row["topic"] == "number"', 'row["kind"] == "number"'),
    "target that is no option": (CODE, RECORD, f"    documents=lambda record: [{LOWER}],\n{RECORD}"),
    "gold answer among the visible fields": (CODE, '{"question", "choices"}', '{"question", "choices", "target"}'),
    "duplicate ids": (MINI, 'f"{topic}-{index + 1}"', 'f"{topic}-{index // 2}"'),
    "pictures that do not decode": (MINI, "    (folder / FILE)", f"    {BAD_PICTURE}\n    (folder / FILE)"),
    "answer of a wrong letter": (MINI, '"answer": OPTIONS[place]', '"answer": "E"'),
    "blank questions": (MINI, '"Which shape does the picture show?"', '" "'),
    "score of another type": (CODE, SCORE, "process_results = lambda doc, results: 0.5"),
    "score of the wrong field": (CODE, SCORE, f"{LAMBDA}({{**doc, 'target': doc['question']}}, results)"),
    "score that is always right": (CODE, SCORE, f"{LAMBDA}(doc, [doc['target']])"),
}
ONLY_WARNED = {"error that no question has", "cluster key that no document has"}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    write_package(folder, "acme-bench", benchmark="acme_dots")
    return folder / "src"


@pytest.fixture
def site(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package as if installed, with a cache of its own; what was imported of it is forgotten."""
    site = tmp_path / "site"
    shutil.copytree(package, site)
    info = site / "acme_bench-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-bench\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[medtasks.tasks]\nacme = {MODULE}\n")
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MEDTASKS_DATA", "mini")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.chdir(site)
    yield site
    for name in [name for name in sys.modules if name.partition(".")[0] == MODULE]:
        del sys.modules[name]


def printed(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What the command prints about the package, with columns two spaces apart.

    How scores behave is checked for breaks of scores alone: it takes most of the time.
    """
    quick = [] if name.startswith("score") or name == "nothing" else ["--quick"]
    monkeypatch.setattr("sys.argv", ["medtasks", "validate", "acme_dots", *quick])
    with fresh(), pytest.raises(SystemExit):
        main()
    output = capsys.readouterr()
    assert "Traceback" not in output.err
    return re.sub(" {3,}", "  ", output.out)


def sections() -> dict[str, str]:
    """The golden text of each break."""
    parts = GOLDEN.read_text(encoding="utf-8").split("## ")[1:] if GOLDEN.is_file() else []
    return {name: text.strip() for name, _, text in (part.partition("\n") for part in parts)}


@pytest.mark.parametrize("name", [*BREAKS, "nothing"])
def test_a_broken_package(
    name: str, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if name in BREAKS:
        file, old, new = BREAKS[name]
        path = site / MODULE / file
        text = path.read_text(encoding="utf-8")
        assert old in text, path
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
    text = (
        printed(name, monkeypatch, capsys)
        .replace(f"{site}/", "")
        .replace(medtasks.templates.__path__[0], "templates")
        .strip()
    )
    if os.environ.get("MEDTASKS_WRITE_BREAKS"):
        known = {**sections(), name: text}
        ordered = [(one, known[one]) for one in [*BREAKS, "nothing"] if one in known]
        GOLDEN.write_text("\n\n".join(f"## {one}\n{said}" for one, said in ordered) + "\n", encoding="utf-8")
    assert text == sections()[name]
    assert str(tmp_path) not in text
    errors = [line for line in text.splitlines() if line.startswith("error  ")]
    assert len(errors) in ((0,) if name in {*ONLY_WARNED, "nothing"} else (1, 2))
    for line in errors:
        *_, place, message = re.split(" {2,}", line, maxsplit=4)
        assert re.fullmatch(r"acme_bench/\S+:\d+", place), line
        assert len(message) < 500
