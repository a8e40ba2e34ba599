"""The methods section of each benchmark: golden texts on miniature data, every part of every
signature, sound LaTeX.

Set MEDTASKS_UPDATE_GOLDEN=1 to write the golden files anew, then read the diff.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from boards import HOSTILE, hostile_board
from boards import board as invented_board
from invented_runs import GROUPS, shared_runs
from made_runs import FAIR
from made_runs import board as made_board
from medtasks.leaderboard.board import benchmark_board
from medtasks.leaderboard.board.bibliography import entry_key
from medtasks.leaderboard.exports.references import paper_entry

import medtasks
from medtasks import ExportableBoard
from medtasks.catalog.registry import all_benchmarks
from medtasks.core.errors import UsageError
from medtasks.runs.signature import parse_signature

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def made() -> ExportableBoard:
    (common,) = {folder.parent.parent for folder in shared_runs().values()}
    return medtasks.board(str(common))


def stable(text: str) -> str:
    """The text without hashes, versions, and METEOR, which needs WordNet: they differ between
    installations.
    """
    lines = [line for line in text.splitlines() if not line.startswith("- METEOR")]
    kept = re.sub(r"\n{3,}", "\n\n", "\n".join(lines))
    kept = re.sub(r"; METEOR [\d.]+", "", kept)
    kept = re.sub(r"Versions: .*", "Versions: …", kept)
    kept = re.sub(r"(Filter=)\d+", r"\1…", kept)
    kept = re.sub(r"(medtasks|rouge-score:|sacrebleu:)( ?)\d+(\.\d+)+(\.dev\d+)?", r"\1\2…", kept)
    kept = re.sub(r"\b(run-)?[0-9a-f]{12,16}\b", r"\1…", kept)
    return kept + "\n"


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", GROUPS)
def test_the_section_reads_as_it_did(made: ExportableBoard, benchmark: str) -> None:
    golden = GOLDEN / f"methods_{benchmark}.md"
    text = stable(made.methods(benchmark))
    if os.environ.get("MEDTASKS_UPDATE_GOLDEN") == "1":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", GROUPS)
def test_it_names_every_part_of_every_signature(made: ExportableBoard, benchmark: str) -> None:
    words, _, listed = made.methods(benchmark).partition("**Signatures.**")
    (content,) = [one for one in made.benchmarks if one.name == benchmark]
    signatures = [ranking.signature for ranking in content.rankings]
    assert signatures
    for signature in signatures:
        assert f"`{signature}`" in listed
        missing = {
            key: value
            for key, value in parse_signature(signature).items()
            if f"`{value}`" not in words
            and f"`{key}:{value}`" not in words
            and f"`{key}`" not in words
        }
        assert missing == {}


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", GROUPS)
def test_latex_says_the_same_and_its_references_are_all_there(
    made: ExportableBoard, benchmark: str
) -> None:
    markdown, latex, bibtex = (
        made.methods(benchmark, form) for form in ("markdown", "latex", "bibtex")
    )
    check_balanced(latex)
    cited = [*dict.fromkeys(re.findall(r"\\cite\{([^}]*)\}", latex))]
    assert cited == [*dict.fromkeys(re.findall(r"\[@([^\]]*)\]", markdown))]
    entries = bibtex.strip().split("\n\n")
    assert [entry_key(entry) for entry in entries] == cited
    assert plain(re.sub(r"\\cite\{([^}]*)\}", r"\1", latex)) == plain(markdown)


def plain(text: str) -> str:
    """The letters and digits of a text in either form."""
    bare = re.sub(
        r"\\(begin|end)\{(itemize|sloppypar)\}|\\(sub)?section\*?|\\paragraph|\\item|\\raggedright",
        "",
        text,
    )
    bare = re.sub(r"\\(texttt|allowbreak|textbar|textasciitilde)", "", bare)
    return re.sub(r"[^A-Za-z0-9]", "", bare)


def check_balanced(latex: str) -> None:
    """Every environment that begins ends, in order, and braces match on every line."""
    opened: list[str] = []
    for command, name in re.findall(r"\\(begin|end)\{([a-z*]+)\}", latex):
        if command == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert opened == []
    for line in latex.splitlines():
        counts = Counter(re.sub(r"\\[{}]", "", line))
        assert counts["{"] == counts["}"], line


@pytest.mark.slow
def test_a_board_without_this_benchmark_lists_its_own(made: ExportableBoard) -> None:
    with pytest.raises(
        UsageError, match="benchmark pond_vqa: not on this board, which has kvasir_vqa_x1"
    ):
        made.methods("pond_vqa")
    with pytest.raises(UsageError, match="form is 'html', expected one of markdown, latex, bibtex"):
        made.methods("mi_cxr", "html")  # type: ignore[arg-type]


def test_names_of_others_stay_text() -> None:
    hostile = ExportableBoard(**dict(hostile_board()))
    for benchmark in hostile.benchmarks:
        latex = hostile.methods(benchmark.name, "latex")
        check_balanced(latex)
        assert HOSTILE not in hostile.methods(benchmark.name) + latex + hostile.methods(
            benchmark.name, "bibtex"
        )


def test_a_benchmark_whose_package_has_no_bibtex_is_cited_by_title_and_number() -> None:
    board = ExportableBoard(**dict(invented_board()))
    bibtex = board.methods("pond_vqa", "bibtex")
    first = bibtex.split("\n\n")[0]
    assert entry_key(first) == "pondvqa"
    assert "title = {{PondVQA}}" in first


@pytest.mark.parametrize(
    "content", ["@misc{one, title = {A}}\n@misc{two, title = {B}}", "see the paper", "@misc{a,"]
)
def test_a_wrong_bibtex_file_is_named_and_costs_only_the_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    (tmp_path / "paper.bib").write_text(content, encoding="utf-8")
    mi_cxr = all_benchmarks()["mi_cxr"]
    publication = replace(mi_cxr.publication, bibliography=tmp_path / "paper.bib")
    wrong = replace(mi_cxr, publication=publication)
    monkeypatch.setattr(benchmark_board, "get_benchmark", lambda _: wrong)
    (benchmark,) = made_board(FAIR).benchmarks
    assert benchmark.published_problem == (
        "paper.bib: expected one BibTeX entry, such as @misc{key, title = {…}}; fix the file."
    )
    assert len(benchmark.rankings) == 1
    assert paper_entry(benchmark).startswith("@misc{micxr,")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            '{"max_new_tokens": "many", "temperature": [1]}',
            "temperature [1]; at most many new tokens.",
        ),
        ('{"max_new_tokens": 4096, "top_p": 0.9}', "at most 4,096 new tokens; `top_p=0.9`."),
        ("{}", "the default settings of the back-end."),
        ("[1", "\\[1."),
    ],
)
def test_settings_of_any_form_are_stated(settings: str, words: str) -> None:
    made = invented_board()
    runs = {
        key: run.model_copy(update={"generation": {"t": settings}})
        for key, run in made.runs.items()
    }
    text = ExportableBoard(**{**dict(made), "runs": runs}).methods("pond_vqa")
    assert f"Responses were generated with {words}" in text.replace("\\[1\\]", "[1]")
