"""Compare a judge's verdicts with those that the authors of Kvasir-VQA-x1 released.

``python verdicts.py THEIRS OURS --out FILE_eval.json`` needs two scored runs of the same responses:
THEIRS with the released verdicts (``medtasks score … --verdicts-of``), OURS with those of a judge
of your own (``medtasks judge``). It writes OURS in the layout of the released files, and prints for
each question class how often both judges gave 1 or 0.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import medtasks
from medtasks.core.errors import MedtasksError

RUBRIC = "kvasir_aspects"
COPIED = ("img_id", "question", "complexity", "answer", "question_class")
"""Fields of a document that a released row has as they are."""


class JudgedResponse(NamedTuple):
    """A response with its document, and the verdict of the run's only judge.

    ``scores`` and ``reasons`` are by question class; they are empty if the response is not judged,
    and ``unjudged`` says why.
    """

    document: Mapping[str, Any]
    response: str
    scores: Mapping[str, int]
    reasons: Mapping[str, str]
    unjudged: str | None


def judged_responses(path: str) -> dict[tuple[str, str], JudgedResponse]:
    """The responses of the run in ``path``, by task and sample; failed requests are left out.

    Raises:
        SystemExit: there are several runs, or a response has verdicts of no judge, or of several.
    """
    runs = list(medtasks.open(path))
    if len(runs) != 1:
        sys.exit(f"{path}: {len(runs)} runs, expected 1; name the result directory of one run.")
    (run,) = runs
    responses = {}
    for task in run.manifest.tasks:
        for row in run.samples(task).arrow.to_pylist():
            if row["failed"] is not None:
                continue
            responses[task, row["sample_id"]] = _judged_response(path, row)
    return responses


def _judged_response(path: str, row: Mapping[str, Any]) -> JudgedResponse:
    """A row of a table of samples, with its verdict."""
    verdicts = json.loads(row["verdicts"] or "{}").get(RUBRIC, [])
    judges = verdicts[0]["judges"] if verdicts else {}
    if len(judges) != 1:
        sys.exit(
            f"{path}: sample {row['sample_id']} has verdicts of {len(judges)} judges, expected 1; "
            "judge the run with one judge."
        )
    (verdict,) = judges.values()
    return JudgedResponse(
        json.loads(row["document"]),
        row["response"],
        verdict["scores"] or {},
        verdict["reasons"] or {},
        verdict["unjudged"],
    )


def released_row(judged: JudgedResponse) -> dict[str, Any]:
    """A row as ``evaluation/llm_adjudicator.py`` of the authors writes it: with ``eval_json``, or
    with ``error`` if the verdict could not be read.
    """
    row: dict[str, Any] = {"response": judged.response}
    for field in COPIED:
        row[field] = judged.document[field]
    row["original"] = json.dumps(judged.document["original"], ensure_ascii=False)
    if judged.unjudged is not None:
        row["error"] = judged.unjudged
        return row
    verdict = {}
    for name, score in judged.scores.items():
        verdict[name] = {"score": score, "reason": judged.reasons.get(name, "")}
    row["eval_json"] = verdict
    return row


def agreement(
    pairs: Sequence[tuple[JudgedResponse, JudgedResponse]],
) -> dict[str, Counter[tuple[int, int]]]:
    """By question class, how often the judges gave which pair of scores (theirs, ours)."""
    counts: dict[str, Counter[tuple[int, int]]] = {}
    for theirs, ours in pairs:
        for name in theirs.scores.keys() & ours.scores.keys():
            scores = (int(theirs.scores[name]), int(ours.scores[name]))
            counts.setdefault(name, Counter())[scores] += 1
    return counts


def lines(counts: Mapping[str, Counter[tuple[int, int]]]) -> Iterator[str]:
    """The table that is printed; agreement is the share of equal scores."""
    yield "class\tboth 1\tonly theirs 1\tonly ours 1\tboth 0\tagreement"
    whole: Counter[tuple[int, int]] = Counter()
    for name in sorted(counts):
        whole.update(counts[name])
    for name, row in [*sorted(counts.items()), ("all classes", whole)]:
        cells = [row[1, 1], row[1, 0], row[0, 1], row[0, 0]]
        share = (row[1, 1] + row[0, 0]) / row.total() if row else float("nan")
        yield "\t".join([name, *map(str, cells), f"{share:.3f}"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Write OURS in the released layout, and print the agreement with THEIRS."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("theirs", help="run with the released verdicts")
    parser.add_argument("ours", help="run with the verdicts of another judge")
    parser.add_argument("--out", type=Path, required=True, help="file to write, *_eval.json")
    options = parser.parse_args(arguments)
    try:
        theirs = judged_responses(options.theirs)
        ours = judged_responses(options.ours)
    except MedtasksError as error:
        sys.exit(str(error))
    shared = [key for key in ours if key in theirs]
    different = [key for key in shared if ours[key].response != theirs[key].response]
    if different or not shared:
        sys.exit(
            f"{options.ours}: {len(different)} of {len(shared)} responses are not those of "
            f"{options.theirs}; import both runs from the same file."
        )
    rows = [released_row(judged) for judged in ours.values()]
    options.out.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    pairs = [(theirs[key], ours[key]) for key in shared]
    print("\n".join(lines(agreement(pairs))))
    without = [pair for pair in pairs if any(judged.unjudged is not None for judged in pair)]
    print(
        f"{len(pairs)} responses in both runs, {len(without)} of them without one of the verdicts, "
        f"{len(ours) - len(pairs)} only in {options.ours}, {len(theirs) - len(pairs)} only in "
        f"{options.theirs}; {len(rows)} rows written to {options.out}"
    )


if __name__ == "__main__":
    main()
