"""Document hashes of trusted releases, from prepared data or reference runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from medtasks.data.store import open_prepared
from medtasks.errors import DataError, MedtasksError, UsageError
from medtasks.registry import all_benchmarks
from medtasks.spec import load_spec, load_specs

from .collect import find_runs
from .documents import Hashes, View
from .reading import digest_run
from .releases import Release, Releases, verified
from .standings import doubts


def trusted_documents(sources: Sequence[str]) -> Hashes:
    """Hashes of the documents of all tasks in ``sources``.

    Args:
        sources: names of benchmarks with prepared data, and result directories (or directories that contain some).

    Raises:
        UsageError: a source is neither of these, or two sources disagree.
        NotPreparedError: a benchmark has no prepared data.
        MedtasksError: a run cannot be a reference: incomplete, stripped, or doubtful itself.
    """
    found: dict[tuple[str, str], bytes] = {}
    for source in sources:
        own = _of_data(source) if source in all_benchmarks() else _of_runs(source)
        for key, hashes in own.items():
            if found.setdefault(key, hashes) != hashes:
                raise UsageError(
                    f"{source}: its documents of {key[1]} differ from those of an earlier source, although both claim "
                    f"the data {key[0][:16]}; give only the one to trust."
                )
    return found


def _of_data(benchmark: str) -> dict[tuple[str, str], bytes]:
    manifest = open_prepared(benchmark).manifest
    release = Release(manifest.fingerprint, manifest.mini)
    releases = Releases()
    found = {}
    for task, spec in load_specs().items():
        if spec.kind != "task" or load_spec(task).metadata.benchmark != benchmark:
            continue
        hashes = releases.known(task, release, View())
        if not isinstance(hashes, str):  # else the release has no rows of the task
            found[manifest.fingerprint, task] = hashes[0]
    if not found:
        raise DataError(f"{benchmark}: its prepared data have no document of any task; prepare them again.")
    return found


def _of_runs(source: str) -> dict[tuple[str, str], bytes]:
    path = Path(source)
    if not path.is_dir():
        known = ", ".join(all_benchmarks())
        raise UsageError(f"{source}: neither a result directory (…_medtasks) nor a benchmark; benchmarks are {known}.")
    found: dict[tuple[str, str], bytes] = {}
    folders = find_runs([path])
    if not folders:
        raise UsageError(f"{path}: contains no result directory (…_medtasks); name one that you trust.")
    for folder in folders:
        digest = verified(digest_run(folder), Releases())
        for task, documents in digest.documents.items():
            reasons = doubts(digest, task)
            if not digest.complete[task]:
                reasons.append("not all documents were asked")
            if documents.view != View():
                view = documents.view
                what = "it was stripped" if view.fields is not None else "it is a subset" if view.subset else ""
                reasons.append(what or "frames were capped")
            if reasons:
                raise MedtasksError(f"{folder}: {task}: {reasons[0]}; name a whole run that you trust.")
            key = (digest.facts.data[load_spec(task).metadata.benchmark], task)
            if found.setdefault(key, documents.hashes) != documents.hashes:
                raise UsageError(
                    f"{path}: contains runs with other documents of {task}, although they claim the same data "
                    f"({key[0][:16]}); name the one to trust."
                )
    return found
