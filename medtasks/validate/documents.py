"""Rules for prepared data, and for the documents made of them: complete, consistently typed,
distinct, no hints at the answer, no leakage of the future into windows of streams; and the report
of what breaks them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from medtasks.benchmarks.documents import doc_to_messages, doc_to_visual
from medtasks.benchmarks.variants import question_of
from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import TaskSource
from medtasks.core.errors import MediaError, MedtasksError, first_line
from medtasks.core.findings import Finding, Place, failed, finding
from medtasks.core.schema import shown
from medtasks.core.text import counted, first_names, shortened
from medtasks.data.media.video_index import read_index
from medtasks.data.media.windows import exact
from medtasks.data.prepared import Prepared

Document = Mapping[str, Any]
Documents = Sequence[Document]

_TEXTS = ("sample_id", "cluster", "target", "abstention", "question")
"""Text fields of every document; some documents have no question."""
_KINDS: Mapping[str, Any] = {
    "truth value": bool,
    "number": (int, float),
    "text": str,
    "mapping": Mapping,
    "list": (list, tuple),
}

ENOUGH = 50
"""Minimum number of questions for checking the correct answers for bias."""
UNLIKELY = 0.001
"""p value below which an uneven distribution of the correct positions is reported."""
LONGEST_SHARE = 0.6
"""Share of questions whose correct answer is the longest, above which length gives it away."""


class TaskReport:
    """Findings about a task with so many ``documents``: about its file, each document, or all of
    them.
    """

    def __init__(self, source: TaskSource, documents: int = 0) -> None:
        self.source, self.documents, self.place = source, documents, source.place("process_docs")
        self._findings: list[Finding] = []
        self._general: dict[tuple[str, str], Finding] = {}
        self._counts: dict[tuple[str, str], tuple[str, Place, dict[str, None]]] = {}

    def add(self, *findings: Finding) -> None:
        self._findings += findings

    def key(self, code: str, message: str, *keys: str | int, **changed: Any) -> None:
        """Report something about the value at ``keys`` of the task file; ``changed`` are its `fix`
        or `severity`.
        """
        self._findings.append(self.source.finding(code, message, *keys, **changed))

    def say(
        self, code: str, message: str, field: str = "", place: Place | None = None, **changed: Any
    ) -> None:
        """Report something about ``field`` in all documents; only the first report per code and
        field is kept.
        """
        one = finding(code, self.source.name, message, place or self.place, field, **changed)
        self._general.setdefault((code, field), one)

    def count(
        self,
        code: str,
        document: Document,
        message: str,
        field: str = "",
        place: Place | None = None,
    ) -> None:
        """Count one document that breaks the rule ``code``; the ``message`` and ``place`` of the
        first are kept.
        """
        _, _, documents = self._counts.setdefault((code, field), (message, place or self.place, {}))
        documents[str(document.get("sample_id", "(no id)"))] = None

    def findings(self) -> list[Finding]:
        """All findings; a defect of documents that were all reported for another task is not among
        them.
        """
        counts = []
        for (code, field), (message, place, documents) in self._counts.items():
            first = shortened(next(iter(documents)), 120)
            sentence = (
                f"{len(documents):,} of {self.documents:,} documents, first {first!r}: {message}"
            )
            counts.append(finding(code, self.source.name, sentence, place, field))
        return [*self._findings, *counts, *self._general.values()]


def check_documents(documents: Documents, benchmark: Benchmark, report: TaskReport) -> None:
    """Report the defects of one task's documents."""
    for document in documents:
        _check_fields(document, benchmark, report)
        _check_options(document, benchmark, report)
    _check_among_each_other(documents, benchmark, report)
    _check_bias(documents, report)


def _check_fields(document: Document, benchmark: Benchmark, report: TaskReport) -> None:
    for field in (*_TEXTS, "media"):
        value = document.get(field)
        texts, expected = ([value], "text") if field in _TEXTS else (value, "a list of files")
        if field not in document:
            state = "missing"
        elif not isinstance(texts, (list, tuple)) or not all(
            isinstance(text, str) for text in texts
        ):
            state = shown(value)
        else:
            state = "" if field == "abstention" or "".join(texts).strip() else "empty"
        if state and (field != "question" or field in document):
            code = (
                {"target": "MT308", "media": "MT317"}.get(field, "MT304")
                if state == "empty"
                else "MT304"
            )
            report.count(code, document, f"`{field}` is {state}, expected {expected}", field)
    target = document.get("target")
    if (
        isinstance(target, str)
        and benchmark.data.doubt is not None
        and (why := benchmark.data.doubt(document))
    ):
        report.count("MT325", document, why, "target")
    try:
        json.dumps(document, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        report.count("MT321", document, f"it cannot be written as JSON ({error})")


def _check_options(document: Document, benchmark: Benchmark, report: TaskReport) -> None:
    options, choices, target = options_of(document), document.get("choices"), document.get("target")
    texts = [folded(text) for _, text in options]
    if len(options) == 1 or (not options and isinstance(choices, Mapping)):
        report.count("MT311", document, f"{counted(len(options), 'option')}, expected at least two")
    empty = [name for (name, _), text in zip(options, texts, strict=True) if not text]
    if empty:
        report.count("MT316", document, f"option {empty[0]} is empty, expected text")
    elif len(options) > 1 and len(set(texts)) == 1:
        report.count(
            "MT312", document, f"all options are {shown(texts[0])}, expected different ones"
        )
    else:
        names: dict[
            str, str
        ] = {}  # by text without marks, except for those that make another option
        for (name, _), text in zip(options, texts, strict=True):
            bare = folded(
                "".join(one if one.isalnum() or one in "+-<>=/%" else " " for one in text)
            )
            if names.setdefault(bare, name) != name:
                message = f"options {names[bare]} and {name} are nearly equal ({shown(text)})"
                report.count("MT313", document, message)
                break
    letters = benchmark.options
    if isinstance(choices, Mapping) and options and letters and not set(choices) <= set(letters):
        odd = ", ".join(sorted(set(map(str, choices)) - set(letters)))
        report.count("MT318", document, f"options are called {odd}, expected {', '.join(letters)}")
    if not options or not isinstance(target, str) or not target.strip():
        return
    if isinstance(choices, Mapping):
        right, known = target in choices, first_names((name for name, _ in options), 8)
    else:
        guesses = document.get("guesses")
        also = [*guesses] if isinstance(guesses, (list, tuple)) else []
        allowed = {*texts, *(folded(str(text)) for text in (*also, document.get("abstention", "")))}
        right, known = all(folded(part) in allowed for part in target.split("; ")), "the options"
        right = right or folded(target) in allowed
    if not right:
        report.count("MT307", document, f"the answer is {shown(target)}, expected one of {known}")


def _check_among_each_other(documents: Documents, benchmark: Benchmark, report: TaskReport) -> None:
    """Ids are unique; each prompt with its media occurs once, and has one answer; each field has
    one type, because the harness keeps documents in a table with one type per column.
    """
    numbers: dict[str, int] = {}
    prompts: dict[str, Document] = {}
    types: dict[str, tuple[str, object]] = {}
    for number, document in enumerate(documents, start=1):
        earlier = numbers.setdefault(str(document.get("sample_id")), number)
        if earlier != number:
            message = f"documents {earlier} and {number} have the same `sample_id`"
            report.count("MT305", document, message, "sample_id")
        fields = [
            *sorted(benchmark.visible_fields & set(document)),
            "media",
            "frames",
            "prompt_template",
        ]
        first = prompts.setdefault(
            repr([(field, document.get(field)) for field in fields]), document
        )
        message = f"question, options and media are those of {shown(first.get('sample_id'))}"
        if first is not document and first.get("target") == document.get("target"):
            report.count("MT306", document, message)
        elif first is not document:
            report.count("MT319", document, f"{message}, the answer is not")
        for field, value in document.items():
            if value is not None:
                kind = next(
                    (word for word, kinds in _KINDS.items() if isinstance(value, kinds)),
                    type(value).__name__,
                )
                known, name = types.setdefault(field, (kind, document.get("sample_id")))
                if known != kind:
                    message = (
                        f"`{field}` is a {kind}, but a {known} in {shown(name)}, expected one type"
                    )
                    report.count("MT322", document, message, field)


def options_of(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name and text of each option: by letter (``choices``) or by number (``options``); none for
    open questions.
    """
    choices, options = document.get("choices"), document.get("options")
    if isinstance(choices, Mapping):
        return [(str(key), str(text)) for key, text in choices.items() if text is not None]
    if isinstance(options, Sequence) and not isinstance(options, str):
        return [(str(number), str(text)) for number, text in enumerate(options, start=1)]
    return []


def _check_bias(documents: Documents, report: TaskReport) -> None:
    """Report if the position or length of the correct options gives them away.

    Positions are tested for uniformity with Pearson's chi-square test; a streaming item counts
    once.
    """
    from scipy.stats import chisquare

    once: dict[str, tuple[list[int], int]] = {}
    for document in documents:
        target, options = str(document.get("target")), options_of(document)
        by_letter = isinstance(document.get("choices"), Mapping)
        names = [name if by_letter else folded(text) for name, text in options]
        answer = target if by_letter else folded(target)
        if len(options) > 1 and answer in names:
            question = question_of(document) or document.get("item_id", document.get("sample_id"))
            once.setdefault(
                str(question), ([len(text) for _, text in options], names.index(answer))
            )
    rows = list(once.values())
    if len(rows) < ENOUGH:
        return
    positions = range(max(len(lengths) for lengths, _ in rows))
    counts = [sum(right == position for _, right in rows) for position in positions]
    expected = [
        sum(1 / len(lengths) for lengths, _ in rows if position < len(lengths))
        for position in positions
    ]
    probability = float(chisquare(counts, expected).pvalue)
    if probability < UNLIKELY:
        spread = ", ".join(
            f"{count} at {position}" for position, count in enumerate(counts, start=1)
        )
        message = f"correct answers of {len(rows):,} questions are {spread}, p = {probability:.1g} for a uniform spread"
        report.say("MT314", message)
    longest = sum(own[right] == max(own) and own.count(max(own)) == 1 for own, right in rows)
    if longest > LONGEST_SHARE * len(rows):
        message = (
            f"the correct answer is the longest option in {longest:,} of {len(rows):,} questions"
        )
        report.say("MT315", f"{message}, expected at most {LONGEST_SHARE:.0%}")


def folded(text: str) -> str:
    """``text`` in lower case, with single spaces."""
    return " ".join(text.split()).casefold()


def check_data(prepared: Prepared, decode: bool) -> list[Finding]:
    """Findings about records and media files, which are compared by size or, to ``decode`` them, by
    checksum.
    """
    manifest, name = prepared.manifest, prepared.manifest.benchmark
    try:
        missing = prepared.changed_media() if decode else prepared.missing_media()
        prepared.records()
    except MedtasksError as error:
        return [finding("MT401", str(prepared.directory), str(error))]
    fix = f"restore it, or prepare again: {get_benchmark(name).data.prepare}"
    message = "missing or changed since the data were prepared"
    findings = [
        finding("MT402", str(prepared.media_path(file)), message, fix=fix) for file in missing
    ]
    if failed(findings):
        return findings
    if manifest.references_only:
        findings.append(
            finding(
                "MT402", name, "only references were prepared: no media to check", severity="note"
            )
        )
    findings += [finding("MT404", name, difference) for difference in manifest.differences]
    left_out = manifest.excluded.items()
    return [
        *findings,
        *(finding("MT405", name, f"{number:,} records ({reason})") for reason, number in left_out),
    ]


class MediaCheck:
    """Checks the pictures of a benchmark's documents, each once, and that windows show no frame
    after their end.

    It does not trust the prepared data: it rereads the timestamps from the video, and takes the
    frames from the messages that an adapter would get. Without ``decode`` no picture is read.
    """

    def __init__(self, prepared: Prepared, decode: bool) -> None:
        self._prepared, self._decode = prepared, decode
        self._times: dict[Path, dict[int, Fraction]] = {}
        self._decoded: set[tuple[str, ...]] = set()

    def __call__(self, document: Document, template: str, report: TaskReport) -> None:
        is_window = {"window_end", "times", "frames"} <= set(document)
        try:
            if is_window:
                for message in self._window(document, template):
                    report.count("MT330", document, message)
            elif self._decode and tuple(document["media"]) not in self._decoded:
                doc_to_visual(document)
                self._decoded.add(tuple(document["media"]))
        except MediaError as error:
            report.count("MT402", document, str(error), str(error))
        except Exception as error:  # documents may be another package's
            message = (
                f"its window cannot be read ({first_line(error)})"
                if is_window
                else first_line(error)
            )
            report.count("MT330" if is_window else "MT402", document, message)

    def _window(self, doc: Document, template: str) -> Iterator[str]:
        end = exact(doc["window_end"])
        chosen = [exact(time) for time in doc["times"]]
        if chosen != sorted(set(chosen)):
            yield f"frames are out of order: {doc['times']}"
        if doc["frames"]:
            path = self._prepared.media_path(doc["media"][0])
            if path not in self._times:
                index = read_index(path)
                self._times[path] = dict(zip(index.pts, index.times, strict=True))
            for pts, time in zip(doc["frames"], doc["times"], strict=True):
                true = self._times[path].get(pts)
                if true is None:
                    yield f"the video has no frame with timestamp {pts}"
                elif true > end:
                    yield f"the frame of {float(true):g} s is after the window's end ({float(end):g} s)"
                elif float(true) != time:
                    yield f"the frame recorded at {time:g} s was taken at {float(true):g} s"
        late = [float(time) for time in chosen if time > end]
        if late:
            yield f"a frame of {late[0]:g} is shown, after the window's end ({float(end):g})"
        if not self._decode:
            return
        try:
            content = doc_to_messages(doc, {"template": template})[-1]["content"]
        except MedtasksError as error:
            if isinstance(error, MediaError):
                raise
            return  # the check of the prompts reports it
        parts = [part for part in content if part["type"] == "image"]
        if len(parts) != len(chosen):
            yield f"{len(parts)} pictures are shown, {len(chosen)} were chosen"
        if any(exact(part["time"]) > end for part in parts if "time" in part):
            yield "a picture in the message is later than the window's end"
