"""The rules of the submission check, each with a stable code."""

from __future__ import annotations

from collections.abc import Mapping

from medtasks.core.findings import Rule

from ..verify.rejudging import AGREEMENT

MOST = 5
"""Maximum number of findings of one kind per task or file."""
AS_WRITTEN = "submit the directory as the run wrote it"
SCORE_AGAIN = "score the directory again: `medtasks score DIR --out NEW_DIR`"
OF_DATA = ("target", "cluster", "media", "document", "prompt_hash")
"""Fields of a sample that come from the data; the others are computed from the response, or are the
response.
"""
_RULES = (
    Rule(
        "LB101",
        "error",
        "no result directory",
        fix=(
            "submit the directory …_medtasks that a run writes; "
            "`medtasks score --out` makes one of other logs"
        ),
        expected="at least one",
    ),
    Rule(
        "LB102",
        "error",
        "result directory cannot be read",
        fix="restore it",
        expected="files and directories that can be read",
    ),
    Rule(
        "LB103",
        "error",
        "file does not belong to a result directory",
        fix="remove it; results never include media",
        expected="only manifest.json, scores.json and samples/<task>.jsonl",
    ),
    Rule(
        "LB104",
        "error",
        "link instead of a file",
        fix="copy what it points to",
        expected="a file",
    ),
    Rule(
        "LB106",
        "error",
        "learned metric differs from what its model gives",
        fix=SCORE_AGAIN,
        expected="the score computed here",
    ),
    Rule(
        "LB107",
        "warning",
        "metric cannot be computed here",
        fix="see `medtasks doctor`",
        expected="its score",
    ),
    Rule(
        "LB201",
        "error",
        "not every document was asked",
        fix="run the task to its end",
        expected="all documents",
    ),
    Rule(
        "LB202",
        "error",
        "miniature data",
        fix=(
            "prepare the release and run on it; "
            "for a rehearsal, check and build with --demonstration"
        ),
        expected="the release",
    ),
    Rule(
        "LB203",
        "error",
        "protocol differs from today's",
        fix=(
            "run with the unchanged task file, or score the directory again if only scoring changed"
        ),
        expected="that of the task files installed here",
    ),
    Rule(
        "LB204",
        "error",
        "too little of the release is covered",
        fix="obtain the missing media, prepare and run again",
        expected="the whole release",
    ),
    Rule(
        "LB205",
        "error",
        "responses are not judged",
        fix="run `medtasks judge DIR --judge FILE`",
        expected="all of them",
    ),
    Rule(
        "LB206",
        "warning",
        "blind run",
        fix="nothing to fix; it is shown beside the model, unranked",
        expected="media",
    ),
    Rule(
        "LB207",
        "warning",
        "task of no installed package",
        fix="install it to have the task shown",
        expected="one that has",
    ),
    Rule(
        "LB208",
        "warning",
        "part of the benchmark",
        fix="run the whole group to have it ranked",
        expected="all of its tasks",
    ),
    Rule(
        "LB209",
        "warning",
        "data differ from those of the other runs",
        fix="prepare the same release to be comparable",
        expected="the same data",
    ),
    Rule(
        "LB210",
        "error",
        "requests without a response",
        fix="repeat the command of the run: it sends only these again",
        expected="a response to each",
    ),
    Rule(
        "LB211",
        "warning",
        "newer run of a model",
        fix="make sure that both are from the same people, and remove one of them",
        expected="one run per model",
    ),
    Rule(
        "LB212",
        "warning",
        "responses of another model",
        fix="make sure that each model was asked",
        expected="responses of its own",
    ),
    Rule(
        "LB213",
        "warning",
        "verdicts differ from those given again",
        fix=(
            "ask for the judge's settings, "
            "or judge the run yourself: `medtasks judge DIR --judge FILE`"
        ),
        expected=f"{AGREEMENT:.0%} or more equal scores",
    ),
    Rule(
        "LB214",
        "error",
        "verdicts were not asked again",
        fix="correct the judge's settings",
        expected="an answer of the judge",
    ),
    Rule(
        "LB215",
        "warning",
        "runs contradict each other about their data",
        fix="prepare the data here, which decides",
        expected="equal documents under one fingerprint",
    ),
    Rule(
        "LB216",
        "warning",
        "model trained with a score of the benchmark",
        fix="nothing to fix; the model is marked",
        expected="other training data and rewards",
    ),
    Rule(
        "LB301",
        "error",
        "key or token",
        fix=(
            "remove it everywhere, revoke it, and run again with the key in an environment variable"
        ),
        expected="no secret in any file",
    ),
    Rule(
        "LB302",
        "error",
        "path of one machine",
        fix="replace it with a name that makes sense on other machines",
        expected="no path of one machine",
    ),
    Rule(
        "LB303",
        "error",
        "hidden text in a prompt",
        fix="run again with a template that does not show it",
        expected="nothing of it",
    ),
    Rule(
        "LB304",
        "error",
        "rows of data that must not be shared",
        fix="publish what `medtasks leaderboard strip` leaves, or keep the repository private",
        expected="only ids, extracted options and scores",
    ),
    Rule(
        "LB305",
        "error",
        "samples without prompts and responses",
        fix=AS_WRITTEN,
        expected="both",
    ),
    Rule(
        "LB401",
        "error",
        "samples are not of the data",
        fix=AS_WRITTEN,
        expected="the documents of the task",
    ),
    Rule(
        "LB402",
        "warning",
        "run cannot be verified here",
        fix="prepare the data of the run here",
        expected="the data of the run",
    ),
    Rule(
        "LB403",
        "error",
        "prompt differs from the template",
        fix=AS_WRITTEN,
        expected="the prompt that the task's template renders",
    ),
    Rule(
        "LB404",
        "error",
        "sample differs from the data",
        fix=SCORE_AGAIN,
        expected="the value in the data",
    ),
    Rule(
        "LB405",
        "error",
        "score or extracted answer differs from that computed here",
        fix=SCORE_AGAIN,
        expected="the value computed here from the response",
    ),
)
RULES: Mapping[str, Rule] = {rule.code: rule for rule in _RULES}
"""The rules by code; a code never changes its meaning."""
