"""The rules of the submission check, each with a stable code, and how their findings are worded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from medtasks.core.findings import Finding, Severity
from medtasks.runs.manifest import RunManifest
from medtasks.runs.samples import Sample

from ..verify.rejudging import AGREEMENT
from ..verify.scored_run import ScoredRun

MOST = 5
"""Maximum number of findings of one kind per task or file."""


class Rule(NamedTuple):
    """A rule: what is expected, and how to fix what breaks it, unless a finding says otherwise."""

    code: str
    severity: Severity
    title: str
    expected: str
    fix: str


_AS_WRITTEN = "submit the directory as the run wrote it"
_RULES = (
    Rule("LB101", "error", "no result directory", "at least one",
         "submit the directory …_medtasks that a run writes; `medtasks score --out` makes one of other logs"),
    Rule("LB102", "error", "result directory cannot be read", "files and directories that can be read", "restore it"),
    Rule("LB103", "error", "file does not belong to a result directory",
         "only manifest.json, scores.json and samples/<task>.jsonl", "remove it; results never include media"),
    Rule("LB104", "error", "link instead of a file", "a file", "copy what it points to"),
    Rule("LB106", "error", "learned metric differs from what its model gives", "the score computed here",
         "score the directory again: `medtasks score DIR --out NEW_DIR`"),
    Rule("LB107", "warning", "metric cannot be computed here", "its score", "see `medtasks doctor`"),
    Rule("LB201", "error", "not every document was asked", "all documents", "run the task to its end"),
    Rule("LB202", "error", "miniature data", "the release", "prepare the release and run on it"),
    Rule("LB203", "error", "protocol differs from today's", "that of the task files installed here",
         "run with the unchanged task file, or score the directory again if only scoring changed"),
    Rule("LB204", "error", "too little of the release is covered", "the whole release",
         "obtain the missing media, prepare and run again"),
    Rule("LB205", "error", "responses are not judged", "all of them", "run `medtasks judge DIR --judge FILE`"),
    Rule("LB206", "warning", "blind run", "media", "nothing to fix; it is shown beside the model, unranked"),
    Rule("LB207", "warning", "task of no installed package", "one that has", "install it to have the task shown"),
    Rule("LB208", "warning", "part of the benchmark", "all of its tasks", "run the whole group to have it ranked"),
    Rule("LB209", "warning", "data differ from those of the other runs", "the same data",
         "prepare the same release to be comparable"),
    Rule("LB210", "error", "requests without a response", "a response to each",
         "repeat the command of the run: it sends only these again"),
    Rule("LB211", "warning", "newer run of a model", "one run per model",
         "make sure that both are from the same people, and remove one of them"),
    Rule("LB212", "warning", "responses of another model", "responses of its own",
         "make sure that each model was asked"),
    Rule("LB213", "warning", "verdicts differ from those given again", f"{AGREEMENT:.0%} or more equal scores",
         "ask for the judge's settings, or judge the run yourself: `medtasks judge DIR --judge FILE`"),
    Rule("LB214", "error", "verdicts were not asked again", "an answer of the judge", "correct the judge's settings"),
    Rule("LB301", "error", "key or token", "no secret in any file",
         "remove it everywhere, revoke it, and run again with the key in an environment variable"),
    Rule("LB302", "error", "path of one machine", "no path of one machine",
         "replace it with a name that makes sense on other machines"),
    Rule("LB303", "error", "hidden text in a prompt", "nothing of it",
         "run again with a template that does not show it"),
    Rule("LB304", "error", "rows of data that must not be shared", "only ids, extracted options and scores",
         "publish what `medtasks leaderboard strip` leaves, or keep the repository private"),
    Rule("LB305", "error", "samples without prompts and responses", "both", _AS_WRITTEN),
    Rule("LB401", "error", "samples are not of the data", "the documents of the task", _AS_WRITTEN),
    Rule("LB402", "warning", "run cannot be verified here", "the data of the run",
         "prepare the data of the run here"),
    Rule("LB403", "error", "prompt differs from the template", "the prompt that the task's template renders",
         _AS_WRITTEN),
)  # fmt: skip

RULES: Mapping[str, Rule] = {rule.code: rule for rule in _RULES}
"""The rules by code; a code never changes its meaning."""


class Asked(NamedTuple):
    """A repository's requirements; see `medtasks.leaderboard.intake.check.check_results`."""

    coverage: float
    demonstration: bool
    public: bool


def problem(
    code: str,
    where: str,
    found: str,
    *,
    expected: str = "",
    fix: str = "",
    file: Path | None = None,
    line: int | None = None,
    field: str = "",
    severity: Severity | None = None,
) -> Finding:
    """A finding of rule ``code``, in one sentence: what was found, what was expected, and how to fix it."""
    rule = RULES[code]
    place = f"field `{field}`: " if field else ""
    message = f"{place}{found}, expected {expected or rule.expected}; {fix or rule.fix}."
    return Finding(severity or rule.severity, rule.title, where, message, code, str(file or ""), line, field)


@dataclass(frozen=True)
class Submission:
    """A run that could be read: its directory, its content, and as it is scored here."""

    folder: Path
    manifest: RunManifest
    samples: Mapping[str, Sequence[Sample]]
    scored: ScoredRun

    def problem(
        self, code: str, where: str, found: str, field: str = "", file: str = "manifest.json", **more: Any
    ) -> Finding:
        """A finding about one of the run's files; ``more`` are further arguments of `problem`."""
        return problem(code, where, found, file=self.folder / file, field=field, **more)
