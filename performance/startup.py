"""S6: what the plug-in adds to lmms-eval's start-up, and what it saves, in one run.

Inside fresh interpreters that have imported what lmms-eval imports anyway, this times the two
things the plug-in adds: the entry point's payload, and our part of the task index. Both are
compared with the harness's own index of tasks, without the plug-in and with it, which has the files
parsed in C.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys

PROBE = """
import json, time
from importlib.metadata import entry_points
import lmms_eval.api.task, lmms_eval.tasks  # what the harness loads before it loads plug-ins
import medtasks.harness as harness
TaskManager = lmms_eval.tasks.TaskManager
import lmms_eval.models
started = time.perf_counter()
list(entry_points(group="lmms_eval.models"))
harness.model_manifests()
payload = time.perf_counter() - started
started = time.perf_counter()
manager = TaskManager("ERROR")
indexing = time.perf_counter() - started
started = time.perf_counter()
TaskManager.initialize_tasks.__wrapped__(manager)
alone = time.perf_counter() - started
started = time.perf_counter(); harness.task_index(); own = time.perf_counter() - started
print(json.dumps({"payload": payload, "indexing": indexing, "alone": alone, "own": own}))
"""
IMPORT = (
    "import time; s = time.perf_counter(); import medtasks.harness; print(time.perf_counter() - s)"
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    probes = [json.loads(_python(PROBE).splitlines()[-1]) for _ in range(runs)]
    imports = [float(_python("import importlib.metadata;" + IMPORT)) for _ in range(runs)]

    def median(key: str) -> float:
        return statistics.median(entry[key] for entry in probes) * 1000

    added = median("payload") + median("own") + statistics.median(imports) * 1000
    print(
        f"{platform.machine()}, Python {platform.python_version()}, medians of {runs} fresh "
        f"interpreters\n"
    )
    print("| step | ms |\n|---|---:|")
    print(f"| import of `medtasks.harness` | {statistics.median(imports) * 1000:.1f} |")
    print(f"| entry point payload | {median('payload'):.1f} |")
    print(f"| our entries of the task index | {median('own'):.1f} |")
    print(f"| **added by the plug-in** | **{added:.1f}** |")
    print(f"| lmms-eval's index of tasks, without the plug-in | {median('alone'):.0f} |")
    print(f"| with it, whose files are parsed in C | {median('indexing'):.0f} |")


def _python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    main()
