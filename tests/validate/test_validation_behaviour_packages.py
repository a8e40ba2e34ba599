"""Planted defects of another package's metrics and filters, registered as any package registers its own."""

from __future__ import annotations

from collections.abc import Iterator
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
    bounds = (0.0, 1.0)

    @property
    def signature(self) -> str:
        return sign(self.name)

    def statistics(self, prediction: str, reference: str) -> Any:
        return np.array([float(prediction == reference), 1.0])


class Doubled(Exact):
    name = "seeded_lab_doubled"

    def statistics(self, prediction: str, reference: str) -> Any:
        return np.array([2.0 * (prediction == reference), 1.0])


class Percent(Exact):
    name = "seeded_lab_percent"
    bounds = None  # type: ignore[assignment]

    def statistics(self, prediction: str, reference: str) -> Any:
        return np.array([100.0 * (prediction == reference), 1.0])


class Infinite(Exact):
    name = "seeded_lab_infinite"

    def statistics(self, prediction: str, reference: str) -> Any:
        return np.array([float(prediction == reference) if prediction else float("inf"), 1.0])


class Wide(Exact):
    name = "seeded_lab_wide"
    width = 3


class Polite(Exact):
    """Gives every answer the same."""

    name = "seeded_lab_polite"

    def statistics(self, prediction: str, reference: str) -> Any:
        del prediction, reference
        return np.array([1.0, 1.0])


class Brittle(Exact):
    """Cannot read what is long."""

    name = "seeded_lab_brittle"

    def statistics(self, prediction: str, reference: str) -> Any:
        if len(prediction) > 5000:
            raise ValueError("too long")
        return super().statistics(prediction, reference)


class Unscored(Exact):
    name = "seeded_lab_unscored"

    def score(self, totals: Any) -> Any:
        raise ZeroDivisionError(len(totals))


class Flat(Exact):
    """Gives one number, whatever it is asked."""

    name = "seeded_lab_flat"

    def score(self, totals: Any) -> Any:
        return np.float64(np.ravel(totals)[0] / np.ravel(totals)[1])


class Overflowing(Exact):
    """Keeps something that cannot be summed, which its score does not even need."""

    name = "seeded_lab_overflowing"
    width = 3

    def statistics(self, prediction: str, reference: str) -> Any:
        return np.array([*super().statistics(prediction, reference), np.inf])


METRICS = (Flat, Overflowing, Exact, Doubled, Percent, Infinite, Wide, Polite, Brittle, Unscored)


class Plain:
    def apply(self, responses: list[list[str]], documents: Any) -> list[list[str]]:
        del documents
        return [[one.strip() for one in said] for said in responses]


class FirstWord(Plain):
    def apply(self, responses: list[list[str]], documents: Any) -> list[list[str]]:
        return [[one.split()[0] for one in said] for said in super().apply(responses, documents)]


class Lossy(Plain):
    """Leaves out what it has seen."""

    def apply(self, responses: list[list[str]], documents: Any) -> list[list[str]]:
        return [list(said) for said in dict.fromkeys(map(tuple, super().apply(responses, documents)))]


class Latin(Plain):
    def apply(self, responses: list[list[str]], documents: Any) -> list[list[str]]:
        return [[one.encode("latin-1").decode() for one in said] for said in super().apply(responses, documents)]


class Mute(Plain):
    def apply(self, responses: list[list[str]], documents: Any) -> list[list[str]]:
        raise OSError(f"no filter today for {len(responses)} of {len(documents)}")


class Upper(Plain):
    def apply(self, responses: list[list[str]], documents: Any) -> list[list[str]]:
        return [[one.upper() for one in said] for said in super().apply(responses, documents)]


FILTERS = (Plain, FirstWord, Lossy, Latin, Mute, Upper)

PLUGIN = Plugin(
    metrics=tuple(kind() for kind in METRICS),
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


IN_METRICS: dict[type[Exact], set[tuple[str, str]]] = {
    Doubled: {("MT504", "error")},
    Percent: {("MT504", "warning")},
    Infinite: {("MT504", "error")},
    Wide: {("MT508", "error")},
    Flat: {("MT507", "error")},
    Overflowing: {("MT504", "error")},
    Polite: {("MT502", "error"), ("MT503", "error")},
    Brittle: {("MT509", "error")},
    Unscored: {("MT507", "error")},
}


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize("kind", IN_METRICS, ids=lambda kind: kind.__name__)
def test_defects_of_metrics(kind: type[Exact]) -> None:
    assert said(with_metrics(kind.name)) >= IN_METRICS[kind]


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
