"""Token limits of our tasks: room for a model that reasons, and nothing that could cut a legitimate answer."""

from __future__ import annotations

import pytest

from medtasks.catalog.contents import owner_of
from medtasks.catalog.spec import TaskSpec, load_specs


@pytest.mark.parametrize(
    "spec", [pytest.param(one, id=name) for name, one in load_specs().items() if one.kind == "task"]
)
def test_a_task_leaves_room_to_reason_and_has_no_stop_strings(spec: TaskSpec) -> None:
    assert owner_of(spec.path).ours
    assert (spec.generation["max_new_tokens"], spec.generation["until"]) == (4096, [])
