"""Published figures: they load, map to what is scored here, add up as in the papers, and wrong
files are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from made_runs import FAIR, board, entry, right, run
from medtasks.leaderboard.schema import reference
from medtasks.leaderboard.schema.reference import (
    PublishedFigure,
    load_reference,
    published_figures,
    read_reference,
)
from medtasks.leaderboard.site.pages import pages_of
from scipy.optimize import linprog
from table4 import table4_overall

from medtasks.catalog.registry import all_benchmarks
from medtasks.catalog.spec import load_specs
from medtasks.core.errors import DataError
from medtasks.metrics.registry import get_metric

READABLE = {
    "kvasir_vqa_x1": (1063, 7),
    "med_cmr": (63, 0),
    "medstreambench": (81, 0),
    "mi_cxr": (154, 0),
}
"""Figures that can be read, and those that cannot."""


def figures(benchmark: str) -> tuple[PublishedFigure, ...]:
    return load_reference(benchmark).figures


def printed(benchmark: str) -> dict[tuple[str, str, str], Decimal]:
    """The readable figures by table, label and column."""
    readable = {(one.table, one.label, one.column): one.printed for one in figures(benchmark)}
    return {place: Decimal(text) for place, text in readable.items() if text is not None}


@pytest.mark.parametrize(
    "benchmark",
    [name for name, one in all_benchmarks().items() if one.publication.figures is not None],
)
def test_every_figure_maps_to_a_task_a_metric_and_a_breakdown_in_its_unit(benchmark: str) -> None:
    values = [one.value for one in figures(benchmark)]
    assert (len(values) - values.count(None), values.count(None)) == READABLE[benchmark]
    assert load_reference(benchmark).gaps
    specs, highest = load_specs(), {"chrf": 100, "open_total": 100}
    for cell in figures(benchmark):
        assert specs[cell.task].metadata.benchmark.startswith(
            benchmark
        )  # tracks are benchmarks of their own
        assert cell.breakdown is None or cell.breakdown in specs[cell.task].metadata.breakdowns
        assert get_metric(cell.metric).name == cell.metric
        low = -np.inf if cell.metric == "bleurt" else 0
        assert cell.value is None or low <= cell.value <= highest.get(cell.metric, 1), cell


def test_rows_name_the_models_that_were_trained_on_the_benchmark() -> None:
    trained = {one.model: one.trained for one in figures("kvasir_vqa_x1")}
    assert set(trained.values()) == {"yes", "no"}
    untrained = {model for model, answer in trained.items() if answer == "no"}
    assert untrained == {"Gemma 3 4B", "MedGemma 4B", "Qwen2.5-VL 7B"}
    others = READABLE.keys() - {"kvasir_vqa_x1"}
    assert {one.trained for benchmark in others for one in figures(benchmark)} == {"unknown"}


HEAD = (
    "table,source,paper,judge,label,model,family,size,type,trained,column,printed,unit,task,metric,breakdown,group,"
    "rankable,why,notes,row_notes\n"
)
GOOD = (
    HEAD + ",,,,,,,,,,note,,,,,,,,,About all,\n"
    ",,,,,,,,,,gap,,,,,,,,not in our copy,Table 9,\n"
    "Table 1,paper,arXiv 0,,First,First,F,,general,no,A,50.0,percent,some_task,accuracy,,,yes,,,Of the table\n"
    'Table 1,paper,arXiv 0,,second,Second,F,7B,closed,yes,A,,percent,some_task,accuracy,kind,easy,no,Odd,"One\nTwo",\n'
    "Table 1,paper,arXiv 0,,First,First,F,,general,no,B,-0.530,score,other_task,bleurt,,,yes,,,\n"
)


def written(folder: Path, text: str) -> Path:
    path = folder / "published.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_figure_names_our_column_or_the_papers_heading(tmp_path: Path) -> None:
    found = read_reference(written(tmp_path, GOOD))
    assert (found.notes, found.gaps) == (("About all",), ("Table 9: not in our copy",))
    first, second, last = published_figures(found, {("some_task", "accuracy", None, None): "key"})
    assert (first.label, first.model, first.size, first.trained) == ("First", "First", None, "no")
    assert first.row_notes == ("Of the table",)
    assert [(one.label, one.column, one.value) for one in (first, last)] == [
        ("First", "key", 0.5),
        ("First", "B", -0.53),
    ]
    assert (second.column, second.printed, second.value, second.rankable, second.why) == (
        "A",
        None,
        None,
        False,
        "Odd",
    )
    assert second.notes == ("One", "Two")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("50.0", "150.0", r"line 4: .*`printed` is 150.0, expected 0 to 100 \(percent\)"),
        ("50.0", "-1", "`printed` is -1, expected 0 to 100"),
        ("50.0", "fifty", "`printed` is 'fifty', expected a number"),
        ("50.0", "", "`printed` is empty; say why in `notes`"),
        ("-0.530", "9" * 400, "`printed` is '9999.*', expected a number"),
        (",yes,,,\n", "\n", "line 7: field `rankable`"),
        ("-0.530", "nan", "`printed` is 'nan', expected a number"),
        ("no,B,", "no,A,", "line 7: Table 1, First, A is duplicated"),
        ("general,no,A", "general,maybe,A", "field `trained` is 'maybe'"),
        (
            "percent,some_task,accuracy,,",
            "percents,some_task,accuracy,,",
            "field `unit` is 'percents'",
        ),
        ("accuracy,,,yes", "accuracy,,easy,yes", "one of `breakdown` and `group`"),
        (",no,Odd,", ",yes,Odd,", "`why` is given, but the figure is rankable"),
        ("Table 1,paper,arXiv 0,,First,First", "Table 1,,arXiv 0,,First,First", "field `source`"),
        (",row_notes\n", ",sauce\n", "line 4: "),
        ('"One', '"One" x', "not a readable CSV file"),
    ],
)
def test_a_wrong_file_is_refused_by_line_and_field(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in GOOD
    with pytest.raises(DataError, match=message) as caught:
        read_reference(written(tmp_path, GOOD.replace(old, new, 1)))
    assert "published.csv" in str(caught.value)


def test_a_wrong_file_costs_only_the_published_rows_of_its_benchmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = written(tmp_path, GOOD.replace("50.0", "fifty", 1))
    known = dict(all_benchmarks())
    mi_cxr = known["mi_cxr"]
    known["mi_cxr"] = replace(mi_cxr, publication=replace(mi_cxr.publication, figures=wrong))
    monkeypatch.setattr(reference, "get_benchmark", known.__getitem__)
    load_reference.cache_clear()
    made = board(
        FAIR,
        run("fair", [entry("med_cmr_mcq", {"accuracy": right(0.5, 3)})], "run-cmr"),
        published=True,
    )
    load_reference.cache_clear()
    cxr, cmr = made.benchmarks
    assert (cxr.name, cxr.published, len(cxr.rankings)) == ("mi_cxr", (), 1)
    assert cxr.published_problem.startswith("published.csv, line 4: ")
    assert "`printed` is 'fifty', expected a number" in cxr.published_problem
    assert cmr.published
    assert not cmr.published_problem
    assert "published.csv, line 4: " in pages_of(made, {}, [])["benchmark-mi_cxr.html"]()


def half_unit(*figures: Decimal) -> float:
    """Half a unit of the last digit, which these figures share: what rounding may have taken from
    each.
    """
    (exponent,) = {int(figure.as_tuple().exponent) for figure in figures}
    return float(5 * Decimal(10) ** (exponent - 1))


def misfit(parts: Sequence[Sequence[Decimal]], wholes: Sequence[Decimal]) -> float:
    """The least error, of the worst row, with which one set of shares of the parts makes the wholes
    of all rows.
    """
    matrix, target = np.array(parts, dtype=float), np.array(wholes, dtype=float)
    slack = -np.ones((len(target), 1))
    found = linprog(
        [*np.zeros(matrix.shape[1]), 1],
        A_ub=np.vstack([np.hstack([matrix, slack]), np.hstack([-matrix, slack])]),
        b_ub=np.concatenate([target, -target]),
        A_eq=[[*np.ones(matrix.shape[1]), 0]],
        b_eq=[1],
        bounds=[(0, None)] * (matrix.shape[1] + 1),
    )
    assert found.success
    return float(found.x[-1])


KVASIR = ("gemma3", "medgemma", "medgemma-ft", "Qwen 2.5-VL-7B", "Qwen2.5-VL-7B-ft")
LEVELS = tuple(f"Table 7, complexity level {level}" for level in (1, 2, 3))
_LAST = figures("kvasir_vqa_x1")[-1]
CLASSES = tuple(
    one.column
    for one in figures("kvasir_vqa_x1")
    if (one.table, one.label) == (_LAST.table, _LAST.label)
)


@pytest.mark.parametrize("name", [name for name in CLASSES if name != "finding_presence"])
def test_kvasir_overall_is_the_levels_pooled(name: str) -> None:
    found = printed("kvasir_vqa_x1")
    rows = [
        [found.get((table, model, name)) for table in (*LEVELS, "Table 7, overall")]
        for model in KVASIR
    ]
    known = [[figure for figure in row if figure is not None] for row in rows if None not in row]
    parts, wholes = [row[:-1] for row in known], [row[-1] for row in known]
    assert len(wholes) >= 3  # more than the two free shares
    assert misfit(parts, wholes) <= half_unit(*wholes) + half_unit(*chain(*parts))


SUBTYPES = (
    "TEL (Single)",
    "TEL (Multi)",
    "TEL (E→R)",
    "ICR",
    "GTS (Single)",
    "GTS (Multi)",
    "Overall",
)


def test_mi_cxr_overall_is_the_subtypes_pooled() -> None:
    found = printed("mi_cxr")
    labels = dict.fromkeys(model for table, model, _ in found if table == "README, results")
    rows = [[found["README, results", label, column] for column in SUBTYPES] for label in labels]
    assert misfit([row[:-1] for row in rows], [row[-1] for row in rows]) <= 2 * half_unit(
        *chain(*rows)
    )


# SU and MSI are swapped between the printed table and the release, and one SOD row is missing
MED_CMR = {"SOD": 1023, "FDD": 711, "SU": 709, "TP": 336, "CR": 1922, "LTG": 11582, "MSI": 371}


def test_med_cmr_overall_is_the_seven_dimensions_pooled() -> None:
    assert {one.column for one in figures("med_cmr") if not one.rankable} == {"SU", "MSI"}
    found = printed("med_cmr")
    for label in dict.fromkeys(label for _, label, _ in found):
        columns = {name: found["Main results", label, name] for name in MED_CMR}
        overall = found["Main results", label, "MCQ All"]
        pooled = sum(float(figure) * MED_CMR[name] for name, figure in columns.items()) / sum(
            MED_CMR.values()
        )
        assert abs(pooled - float(overall)) <= half_unit(overall) + half_unit(*columns.values())


# "about": the paper prints no number of items
MODES = {"retrospective": 3820, "present": 402, "future": 885, "proactive": 311}


def test_medstreambench_overall_follows_from_its_modes() -> None:
    for label in {one.label for one in figures("medstreambench")}:
        row = {
            one.column: Decimal(one.printed or "nan")
            for one in figures("medstreambench")
            if one.label == label
        }
        values = {column: float(figure) for column, figure in row.items()}
        means: dict[str, tuple[float, float | None]] = {
            mode: (values[f"{mode.capitalize()} Content"], values.get(f"{mode.capitalize()} Resp."))
            for mode in MODES
        }
        rounding = 2 * half_unit(*row.values())
        assert abs(table4_overall(means, MODES) - values["Overall Score"]) <= rounding
