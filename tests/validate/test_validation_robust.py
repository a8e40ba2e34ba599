"""Whatever stands in a file, validating ends with findings, in rows that can be printed, and never
with a traceback.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from seeded_bench import codes

from medtasks.catalog.marked_yaml import parse_yaml
from medtasks.core.errors import UsageError
from medtasks.core.findings import COLUMNS, RULES, Finding, Place, as_rows, failed, finding, summary
from medtasks.validate.run import validate
from medtasks.validate.templates import read_template

TASK = Path("task.yaml")
RELAXED = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

KEYS = (
    "task",
    "group",
    "include",
    "metadata",
    "metric_list",
    "filter_list",
    "generation_kwargs",
    "process_docs",
)
WORDS = st.sampled_from(
    [
        *KEYS,
        "benchmark",
        "version",
        "mi_cxr",
        "!function os.path",
        "{",
        "}",
        "[",
        "]",
        "&a",
        "*a",
        "<<",
    ]
)
YAML_LIKE = st.lists(
    WORDS | st.sampled_from([": ", "\n", "  ", "- ", "'", '"', "|", "!!int ", "? ", "---"])
).map("".join)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["mi_cxr", "x"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), inner)
    ),
)

PIECES = "{{ }} {% %} {# #} if for in endif endfor question include a . | ( ) [ ] is 1e999 macro set = ~ extends as x"
TEMPLATE_LIKE = st.lists(st.sampled_from([*PIECES.split(), " ", "9" * 5000])).map("".join)


@given(st.binary(max_size=400))
@RELAXED
def test_random_bytes_as_a_task_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "random.yaml"
    path.write_bytes(content)
    assert any(one.severity == "error" for one in validate([str(path)], quick=True).tasks)


@given(YAML_LIKE)
@RELAXED
def test_yaml_like_text(text: str) -> None:
    defects = parse_yaml(text, TASK).defects
    assert all(1 <= (one.line or 0) <= text.count("\n") + 2 for one in defects)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(KEYS), VALUES))
@RELAXED
def test_any_values_under_known_keys(tmp_path: Path, content: dict[str, object]) -> None:
    import yaml

    path = tmp_path / "odd.yaml"
    path.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8", errors="replace")
    assert any(one.severity == "error" for one in validate([str(path)], quick=True).tasks)


@given(st.binary(max_size=200) | TEMPLATE_LIKE.map(str.encode))
@RELAXED
def test_random_templates(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("templates")
    (folder / "random.j2").write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEDTASKS_TEMPLATES", str(folder))
        _, findings = read_template("random.j2", Place(TASK, 1))
    assert codes(findings) <= {"MT201", "MT202"}


@pytest.mark.parametrize("name", ["", "..", "/etc/passwd", "a\0b", "mi_cxr", "x" * 5000, "\ud800"])
def test_odd_template_names(name: str) -> None:
    _, findings = read_template(name, Place(TASK, 1))
    assert codes(findings) in ({"MT201"}, {"MT202"})


def test_control_characters_are_one_defect() -> None:
    assert [
        (one.code, one.line) for one in parse_yaml("task: new\nmetadata: \x01", TASK).defects
    ] == [("MT101", 2)]


def test_deeply_nested_yaml_and_templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [one.code for one in parse_yaml("[" * 20_000, TASK).defects] == ["MT101"]
    (tmp_path / "deep.j2").write_text("{{ " + "(" * 20_000 + ")" * 20_000 + " }}")
    monkeypatch.setenv("MEDTASKS_TEMPLATES", str(tmp_path))
    assert codes(read_template("deep.j2", Place(tmp_path, 1))[1]) == {"MT202"}


def test_merge_keys_are_read_as_the_harness_reads_them() -> None:
    marked = parse_yaml("base: &base {a: 1, b: 2}\nown:\n  <<: *base\n  b: 3\n", TASK)
    assert marked.content == {"base": {"a": 1, "b": 2}, "own": {"a": 1, "b": 3}}
    assert marked.lines["own", "b"] == 4


def test_a_file_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes("task: caf\xe9".encode("latin-1"))
    assert codes(validate([str(tmp_path / "latin.yaml")]).tasks) == {"MT101"}


def test_what_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        validate([str(tmp_path / "nowhere")])
    with pytest.raises(UsageError, match="contains no task file"):
        validate([str(tmp_path)])
    with pytest.raises(UsageError, match="did you mean 'mi_cxr'"):
        validate(["mi_crx"])


TEXTS = st.text(max_size=30)
FINDINGS = st.builds(
    Finding,
    severity=st.sampled_from(["error", "warning", "note"]),
    check=TEXTS,
    where=TEXTS,
    message=TEXTS,
    code=st.sampled_from([*RULES, "MT999"]),
    file=TEXTS,
    line=st.none() | st.integers(1, 10_000),
    field=TEXTS,
)


def test_rows_and_summary_name_the_worst_first_and_files_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path / "tasks" / "a b.yaml", 7)
    warning = finding("MT313", "my_task", "options A and B are nearly equal", None, "choices")
    error = finding("MT107", "my_task", "the key 'tsak' is unknown", place, "tsak")
    note = finding(
        "MT404", "my_task", "12 rows, published are 13", Place(Path("/elsewhere/x.yaml"), 1)
    )
    text = "the key 'tsak' is unknown; correct or remove it."
    assert (error.check, error.file, error.line) == (RULES["MT107"].title, str(place.file), 7)
    monkeypatch.chdir(tmp_path)
    rows = as_rows([warning, error, note])
    assert [row[0] for row in rows] == ["error", "warning", "note"]
    assert rows[0] == ("error", "MT107", "my_task", "tasks/a b.yaml:7", text)
    assert all(len(row) == len(COLUMNS) for row in rows)
    assert summary([warning, error, note]) == "1 error, 1 warning, 1 note"
    assert summary([]) == "0 errors, 0 warnings, 0 notes"
    assert failed([warning, error, note])
    assert not failed([warning])
    assert failed([warning], strict=True)
    assert not failed([note], strict=True)


@given(st.lists(FINDINGS, max_size=4))
def test_any_finding_can_be_reported(findings: list[Finding]) -> None:
    for row in as_rows(findings):
        assert all(cell.isprintable() for cell in row)


def test_codes_are_in_order_and_have_titles() -> None:
    assert list(RULES) == sorted(RULES)
    assert all(rule.title and rule.title[-1] != "." for rule in RULES.values())
