"""Planted defects of another package's metrics and filters, registered as any package registers its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seeded_behaviour import TEXT, checked, every, here, said, with_its_metrics

from medtasks.api import FilterInfo, MeanMetric, Plugin, sign
from medtasks.catalog.contents import fresh
from medtasks.core.findings import Finding


class Exact(MeanMetric):
    """Right; the others are defective copies of it."""

    name = "seeded_lab_exact"
    bounds: Any = (0.0, 1.0)

    @property
    def signature(self) -> str:
        return sign(self.name)

    def statistics(self, prediction: str, reference: str) -> Any:
        return np.array([float(prediction == reference), 1.0])


def unreadable(prediction: str, reference: str) -> Any:
    if len(prediction) > 5000:
        raise ValueError("too long")
    return np.array([float(prediction == reference), 1.0])


def divided(_: Any, totals: Any) -> Any:
    raise ZeroDivisionError(len(totals))


def copy(name: str, statistics: Callable[[str, str], Any] | None = None, **changed: Any) -> Exact:
    """A copy of `Exact` with other statistics or attributes."""
    own = {} if statistics is None else {"statistics": lambda _, *texts: statistics(*texts)}
    metric: Exact = type(name.title(), (Exact,), {"name": f"seeded_lab_{name}", **own, **changed})()
    return metric


IN_METRICS: dict[Exact, set[tuple[str, str]]] = {
    copy("doubled", lambda said, gold: np.array([2.0 * (said == gold), 1.0])): {("MT504", "error")},
    copy("percent", lambda said, gold: np.array([100.0 * (said == gold), 1.0]), bounds=None): {("MT504", "warning")},
    copy("infinite", lambda said, gold: np.array([float(said == gold) if said else float("inf"), 1.0])): {
        ("MT504", "error")
    },
    copy("wide", width=3): {("MT508", "error")},
    # one number, whatever it is asked
    copy("flat", score=lambda _, totals: np.float64(np.ravel(totals)[0] / np.ravel(totals)[1])): {("MT507", "error")},
    # something that cannot be summed, which the score does not even need
    copy("overflowing", lambda said, gold: np.array([float(said == gold), 1.0, np.inf]), width=3): {("MT504", "error")},
    copy("polite", lambda _, __: np.array([1.0, 1.0])): {("MT502", "error"), ("MT503", "error")},
    copy("brittle", unreadable): {("MT509", "error")},
    copy("unscored", score=divided): {("MT507", "error")},
}


class Plain:
    @staticmethod
    def read(text: str) -> str:
        return text

    def apply(self, responses: list[list[str]], documents: Any) -> list[list[str]]:
        del documents
        return [[self.read(one.strip()) for one in said] for said in responses]


class FirstWord(Plain):
    read = staticmethod(lambda text: text.split()[0])


class Latin(Plain):
    read = staticmethod(lambda text: text.encode("latin-1").decode())


class Upper(Plain):
    read = staticmethod(str.upper)


class Lossy(Plain):
    """Leaves out what it has seen."""

    def apply(self, responses: list[list[str]], documents: Any) -> list[list[str]]:
        return [list(said) for said in dict.fromkeys(map(tuple, super().apply(responses, documents)))]


class Mute(Plain):
    def apply(self, responses: list[list[str]], documents: Any) -> list[list[str]]:
        raise OSError(f"no filter today for {len(responses)} of {len(documents)}")


FILTERS = (Plain, FirstWord, Lossy, Latin, Mute, Upper)

PLUGIN = Plugin(
    metrics=(Exact(), *IN_METRICS),
    filters=tuple(FilterInfo(kind, "1", lambda text: "ok" if text else "empty") for kind in FILTERS),
)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The metrics and filters above as those of an installed package."""
    folder = tmp_path / "seeded_lab"
    (folder / "tasks/seeded").mkdir(parents=True)
    (folder / "tasks/seeded/seeded_lab_task.yaml").write_text("task: seeded_lab_task\n")
    (folder / "__init__.py").write_text(f"from {__name__} import PLUGIN\n")
    info = tmp_path / "seeded_lab-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: seeded-lab\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[medtasks.tasks]\nseeded = seeded_lab\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "seeded_lab", raising=False)
    with fresh():
        yield


def with_metrics(*names: str) -> list[Finding]:
    listed = [{"metric": name, "aggregation": f"medtasks.benchmarks.aggregations.{name}"} for name in names]
    return checked(
        TEXT,
        every("metrics", names),
        filters=(f"{__name__}.Plain",),
        metrics=names,
        metric_list=listed,
        process_results=here(with_its_metrics),
    )


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize("metric", IN_METRICS, ids=lambda metric: metric.name)
def test_defects_of_metrics(metric: Exact) -> None:
    assert said(with_metrics(metric.name)) >= IN_METRICS[metric]


@pytest.mark.usefixtures("lab")
def test_a_sound_metric_of_another_package_is_fine() -> None:
    assert with_metrics("seeded_lab_exact", "rouge1") == []


@pytest.mark.usefixtures("lab")
def test_a_metric_that_tells_nothing_beside_one_that_does_is_a_warning() -> None:
    (found,) = with_metrics("seeded_lab_exact", "seeded_lab_polite")
    assert (found.code, found.severity, found.field) == ("MT502", "warning", "seeded_lab_polite")


IN_FILTERS: dict[type[Plain], set[str]] = {
    FirstWord: {"MT501", "MT509"},
    Lossy: {"MT507"},
    Latin: {"MT509"},
    Mute: {"MT507"},
    Upper: {"MT501"},
}


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize("kind", IN_FILTERS, ids=lambda kind: kind.__name__)
def test_defects_of_filters(kind: type[Plain]) -> None:
    findings = checked(TEXT, filters=(f"{__name__}.{kind.__name__}",))
    assert {(code, "error") for code in IN_FILTERS[kind]} <= said(findings)
    if kind is Mute:
        assert f"the filter {__name__}.Mute fails" in findings[0].message
        assert "OSError: no filter today" in findings[0].message
