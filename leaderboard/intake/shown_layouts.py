"""What may be shown of a benchmark's samples: its board layout."""

from __future__ import annotations

from medtasks.benchmarks.layout_parts import columns_of
from medtasks.benchmarks.layouts import all_layouts
from medtasks.catalog.board_layout import BoardLayout
from medtasks.catalog.spec import load_specs


def layout_of(benchmark: str) -> BoardLayout:
    """The board layout with the tasks of ``benchmark``, its own or another's.

    Without one, no sample of the benchmark is shown.
    """
    layouts = all_layouts()
    if benchmark in layouts:
        return layouts[benchmark]
    tasks = {name for name, spec in load_specs().items() if spec.metadata.benchmark == benchmark}
    for layout in layouts.values():
        if any(column.task in tasks for column in columns_of(layout)):
            return layout
    return BoardLayout(benchmark, headline=())


def is_withheld(benchmark: str) -> bool:
    """Whether only ids, extracted options and scores of the benchmark's samples may be shown."""
    return layout_of(benchmark).shows == "nothing"
