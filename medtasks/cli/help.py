"""What ``--help`` shows in addition to the docstrings: placeholders, full summaries, examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "path": ('lmms-eval --include_path "$(medtasks path)" --tasks mi_cxr …',),
    "list": ("medtasks list", "medtasks list med_cmr", "medtasks list --all"),
    "show": ("medtasks show mi_cxr_icr --doc 3",),
    "score": (
        "medtasks score results/MODEL/TIME_medtasks",
        "medtasks score predictions.jsonl --from ms-swift --task kvasir_vqa_x1 --model NAME --out scored",
    ),
    "compare": ("medtasks compare results/A/TIME_medtasks results/B/TIME_medtasks --task mi_cxr",),
    "plan": ("medtasks plan mi_cxr --pilot results/A/TIME_medtasks --pilot results/B/TIME_medtasks --difference 2",),
    "judge": ("medtasks judge results/MODEL/TIME_medtasks --judge model=Qwen3-235B,base_url=http://127.0.0.1:8000/v1",),
    "new": ("medtasks new my-benchmark --variant open",),
    "validate": ("medtasks validate mi_cxr", "medtasks validate path/to/tasks --json"),
    "doctor": ("medtasks doctor", "medtasks doctor --model qwen2_5_vl"),
    "view": ("medtasks view results",),
    "export inspect": ("medtasks export inspect results --out logs",),
    "export hub": ("medtasks export hub results/MODEL --model OWNER/NAME --push",),
    "export benchmark": ("medtasks export benchmark med_cmr",),
    "export every-eval-ever": ("medtasks export every-eval-ever results/MODEL --model OWNER/NAME --organization LAB",),
    "fetch": ("medtasks fetch wordnet punkt",),
    "demo": ("medtasks demo --out medtasks-demo",),
    "prepare package": ("medtasks prepare package my_benchmark --source data/",),
    "leaderboard build": ("medtasks leaderboard build results --out page",),
    "leaderboard check": ("medtasks leaderboard check results", "medtasks leaderboard check results --json"),
    "leaderboard strip": ("medtasks leaderboard strip results/MODEL/TIME_medtasks --out stripped",),
}


def plain_help(command: Any, name: str = "", examples: Sequence[str] = ()) -> Any:
    """The click ``command`` with short placeholders, full summaries and examples in its help, and those below it.

    ``name`` is its name below ``medtasks``; ``examples`` are lines to copy if `EXAMPLES` has none of that name.
    """
    for param in command.params:
        if param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: None  # noqa: ARG005  (newer typer shows its Python type)
        if not getattr(param, "is_flag", False):  # --task TASK, as in argparse, instead of a Python type
            param.metavar = param.metavar or max(param.opts, key=len).strip("-").upper().replace("-", "_")
    command.short_help = (command.help or "").partition("\n\n")[0].replace("\n", " ")
    lines = EXAMPLES.get(name, examples)
    if lines:
        shown = ["Example:" if len(lines) == 1 else "Examples:", *(f"  {line}" for line in lines)]
        command.epilog = "\n".join(["\b", *shown])  # click keeps the lines of such a paragraph as they are
    for child in getattr(command, "commands", {}).values():
        plain_help(child, f"{name} {child.name}".strip())
    return command
