"""The source of a small package of another lab: one open question per drawn picture, its own
filter, metric, rubric.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

__all__ = ["write_package", "write_site"]

FILES = {
    "pyproject.toml": """
        [build-system]
        requires = ["setuptools>=68"]
        build-backend = "setuptools.build_meta"

        [project]
        name = "otherlab-bench"
        version = "2.1"

        [project.entry-points."medtasks.tasks"]
        otherlab = "otherlab_bench"

        [tool.setuptools]
        packages = ["otherlab_bench"]

        [tool.setuptools.package-data]
        otherlab_bench = ["tasks/**/*", "templates/**/*", "rubrics/*"]
        """,
    "otherlab_bench/__init__.py": '''
        """Dots on pictures: how many are there?"""

        from pathlib import Path

        from PIL import Image, ImageDraw

        from medtasks.api import (
            Benchmark,
            BoardLayout,
            Column,
            DataSource,
            FilterInfo,
            MeanMetric,
            Plugin,
            Publication,
            Record,
            Rows,
            sample_value,
            sign,
        )


        class Dots(Record):
            question: str
            answer: str
            secret: str


        def read(source):
            for number in range(1, 7):
                yield Dots(
                    sample_id=f"dots-{number}", cluster=f"p{number // 2}", media=(f"{number}.png",),
                    question="How many dots are there?", answer=f"There are {number} dots.", secret="drawn by hand",
                )


        def mini(folder: Path):
            for number in range(1, 7):
                picture = Image.new("RGB", (64, 64))
                for dot in range(number):
                    ImageDraw.Draw(picture).ellipse((5 + 9 * dot, 30, 9 + 9 * dot, 34), fill="white")
                picture.save(folder / f"{number}.png")


        def documents(record):
            return [{**record.model_dump(mode="json"), "target": record.answer, "abstention": "unclear"}]


        class FirstLineFilter:
            def apply(self, resps, docs):
                return [[one.strip().split("\\n")[0] for one in said] for said in resps]


        class Brevity(MeanMetric):
            name = "otherlab_bench_brevity"
            signature = sign("otherlab_bench_brevity", unit="share")

            def statistics(self, prediction, reference):
                import numpy as np
                return np.array([float(len(prediction) <= len(reference)), 1.0])


        dots = Rows("otherlab_dots", lambda row: True)


        def process_results(doc, results):
            names = ("exact_match", "otherlab_bench_brevity")
            return {name: sample_value(name, results, doc["target"], doc["cluster"]) for name in names}


        PLUGIN = Plugin(
            benchmarks=(
                Benchmark(
                    name="otherlab_dots",
                    title="Dots",
                    publication=Publication(
                        paper="none",
                        source="drawn",
                        licence="CC0",
                    ),
                    data=DataSource(
                        prepare="medtasks prepare package otherlab_dots --source DIR",
                        record=Dots,
                        read=read,
                        documents=documents,
                        mini=mini,
                    ),
                    cluster="patient",
                    visible_fields=frozenset({"question"}),
                    breakdowns={},
                ),
            ),
            filters=(FilterInfo(FirstLineFilter, "1", lambda text: "ok" if text else "empty"),),
            metrics=(Brevity(),),
            layouts=(
                BoardLayout("otherlab_dots", (Column("otherlab_dots", Brevity.name, "Shortness"),), shows="text"),
            ),
        )
        ''',
    "otherlab_bench/tasks/placeholder.jsonl": '{"placeholder": true}\n',
    "otherlab_bench/tasks/dots/otherlab_dots.yaml": """
        task: otherlab_dots
        output_type: generate_until
        dataset_path: json
        dataset_kwargs:
          data_files:
            test: ../placeholder.jsonl
        test_split: test
        process_docs: !function otherlab_bench.dots
        doc_to_visual: !function medtasks.api.doc_to_visual
        doc_to_text: !function medtasks.api.doc_to_text
        doc_to_messages: !function medtasks.api.doc_to_messages
        doc_to_target: target
        process_results: !function otherlab_bench.process_results
        generation_kwargs: {max_new_tokens: 32, temperature: 0, until: []}
        filter_list:
          - name: medtasks
            filter:
              - function: !function otherlab_bench.FirstLineFilter
        metric_list:
          - metric: exact_match
            aggregation: !function medtasks.benchmarks.aggregations.exact_match
            higher_is_better: true
          - metric: otherlab_bench_brevity
            aggregation: !function medtasks.benchmarks.aggregations.otherlab_bench_brevity
            higher_is_better: true
        cluster_key: cluster
        reasoning_tags: none
        lmms_eval_specific_kwargs:
          template: otherlab_bench/dots.j2
        metadata:
          version: 1.0
          benchmark: otherlab_dots
          title: "Counting dots"
          rubrics: [otherlab_bench_count]
        """,
    "otherlab_bench/templates/otherlab_bench/dots.j2": "{{ question }} Answer in one sentence.\n",
    "otherlab_bench/templates/otherlab_bench/count.j2": """
        Is the number right?
        {% include "judge/_data_rule.j2" %}

        Reference answer: {{ target }}
        {% include "judge/_verdict.j2" %}
        """,
    "otherlab_bench/rubrics/otherlab_bench_count.yaml": """
        name: otherlab_bench_count
        version: 1
        title: Right number
        template: otherlab_bench/count.j2
        sees: [target]
        benchmarks: [kvasir_vqa_x1]
        reasons: true
        aggregation: mean_of_maximum
        metrics: {otherlab_bench_judged: total}
        aspects:
          - {name: number, guidance: "Is the number right?"}
        """,
}


def write_package(folder: Path) -> Path:
    """The package's source below ``folder``."""
    for name, text in FILES.items():
        _write(folder / name, text)
    return folder


def write_site(
    folder: Path, old: str = "", new: str = "", *, module: str = "otherlab_bench", **more: str
) -> Path:
    """The package as if installed into ``folder``, without the seconds that an installer takes.

    ``old``, which one of its files has, is ``new`` there; ``more`` are further task files, by path
    with ``__`` for ``/``. With another ``module`` it is another package with the same tasks.
    """
    files = {
        name: dedent(text).replace(old, new) if old else dedent(text)
        for name, text in FILES.items()
    }
    assert not old or files != {name: dedent(text) for name, text in FILES.items()}, old
    files |= {f"otherlab_bench/{name.replace('__', '/')}.yaml": text for name, text in more.items()}
    for name, text in files.items():
        _write(folder / name.replace("otherlab_bench", module), text)
    info, name = folder / f"{module}-2.1.dist-info", module.replace("_", "-")
    _write(info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.1\n")
    _write(info / "entry_points.txt", f"[medtasks.tasks]\n{module} = {module}\n")
    _write(info / "RECORD", f"{info.name}/METADATA,,\n")
    return folder


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
