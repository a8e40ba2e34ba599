"""The page of a sample: its media, prompt, response and scores, and the other runs' answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple
from urllib.parse import urlencode

from jinja2 import Environment

from medtasks.benchmarks.documents import prompt_text
from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.core.errors import MedtasksError, UsageError, first_line
from medtasks.runs.samples import Sample

from ..verify.media import shown_media
from .addresses import parsed_query, sample_address
from .answers import answers_to, stages_of
from .bookmarks import write_bookmark
from .library import Library
from .selection import SampleRow, Selection
from .stream_rounds import stream_of


class Step(NamedTuple):
    """A link to another sample of the list: its label and keys, and the sample if there is one."""

    label: str
    keys: str
    row: SampleRow | None


def sample_page(library: Library, environment: Environment, parameters: Mapping[str, str]) -> str:
    """The page of the sample ``id``; its neighbours are those of the list with the same filters.

    A sample that the filters leave out has the neighbours that it would have without filters.
    """
    selection = Selection.at(library, parameters)
    query = selection.query
    sample_id = parameters.get("id", "")
    task = parameters.get("of", query["task"])
    if not _has_task(library, query["task"], task):
        raise UsageError(f"{task}: not a task of {query['task']}; choose another.")
    answers = answers_to(selection, task, sample_id)
    if not answers or answers[0].run is not selection.run:
        raise _no_such_sample(task, sample_id)
    own = answers[0]
    answered_by = [answer.run for answer in answers]
    manifest = selection.run.manifest
    spec = load_spec(task)
    place = selection.place(task, sample_id)
    sample_query = {"task": task, "run": query["run"], "id": sample_id}
    return environment.get_template("sample.html.j2").render(
        page="samples.html",
        selection=selection,
        title=spec.benchmark.title,
        facts=manifest.tasks[task],
        own=own,
        others=answers[1:],
        unanswered=[run for run in library.runs_of[task] if run not in answered_by],
        media=shown_media(own.sample, manifest),
        prompt=_prompt_stages(spec, own.sample),
        stream=stream_of(selection, own.sample),
        place=0 if place is None else place + 1,
        steps=_steps(selection, task, sample_id),
        pictures=f"media?{urlencode(sample_query, errors='surrogatepass')}",
        address_in=partial(_address_in, query, task),
    )


def _address_in(query: Mapping[str, str], task: str, run: str, sample_id: str) -> str:
    """The address of a sample's page in another run, with the same filters."""
    return sample_address({**query, "run": run}, task, sample_id)


def _has_task(library: Library, name: str, task: str) -> bool:
    """Whether a run has samples of ``task``, and the task or group ``name`` has that task."""
    return any(task in tasks for tasks in library.runs_of[name].values())


def _no_such_sample(task: str, sample_id: str) -> UsageError:
    """The error for the id of a sample that the run does not have."""
    return UsageError(f"{task}: this run has no sample {sample_id}; choose one of its list.")


def _steps(selection: Selection, task: str, sample_id: str) -> Sequence[Step]:
    """The links to other samples of the list."""
    neighbours = selection
    place = selection.place(task, sample_id)
    if place is None:
        unfiltered = {name: selection.query[name] for name in ("task", "run")}
        neighbours = Selection.at(selection.library, unfiltered)
        place = neighbours.place(task, sample_id) or 0
    before = neighbours.rows[place - 1] if place else None
    after = neighbours.rows[place + 1 :]
    next_wrong = next((row for row in after if row.is_wrong), None)
    return (
        Step("Previous", "p ArrowLeft", before),
        Step("Next", "n ArrowRight", next(iter(after), None)),
        Step("Next wrong", "w", next_wrong),
        Step("Random wrong", "r", selection.random_wrong()),
    )


def _prompt_stages(spec: TaskSpec, sample: Sample) -> list[tuple[str, str]]:
    """The prompt as it was sent, by stage.

    The second stage is rendered again from the first one's output.
    """
    if spec.stage1_template is None or not sample.responses:
        return [("", sample.prompt)]
    first = ("Stage 1", sample.prompt)
    observations, _ = stages_of(spec, sample.responses[0])
    if not observations or sample.prompt_hash != spec.prompt_hash:
        return [first]
    document = sample.whole_document()
    try:
        text = prompt_text(document, spec.template or "", observations=observations.strip())
    except (MedtasksError, KeyError) as error:
        text = f"It cannot be rendered again ({first_line(error)})."
    return [first, ("Stage 2, without media", text)]


def bookmark_sample(
    library: Library, parameters: Mapping[str, str], form: Mapping[str, str]
) -> str:
    """Bookmark the sample of an address with the form's note, or remove its bookmark.

    Returns:
        The address of the sample's page.
    """
    query = parsed_query(parameters)
    sample_id = parameters.get("id", "")
    task = parameters.get("of", query["task"])
    unfiltered = {name: query[name] for name in ("task", "run", "model")}
    selection = Selection.at(library, unfiltered)
    if selection.place(task, sample_id) is None:
        raise _no_such_sample(task, sample_id)
    note = None if "remove" in form else form.get("note", "").strip()
    write_bookmark(selection.run.folder, task, sample_id, note)
    return sample_address(query, task, sample_id)
