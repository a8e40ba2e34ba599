"""Runs of the real harness in this process, and what they left in their folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from medtasks.harness import run_tasks

ALL_GROUPS = ["kvasir_vqa_x1", "kvasir_vqa_x1_transformed", "kvasir_vqa_x1_medico2025", "mi_cxr", "mi_cxr_cot",
              "mi_cxr_icr_variant", "mi_cxr_1shot", "mi_cxr_icr_variant_1shot", "mi_cxr_sampled",
              "mi_cxr_icr_variant_sampled", "mi_cxr_report", "mi_cxr_icr_variant_cot", "mi_cxr_stagewise",
              "mi_cxr_stagewise_icr_variant", "med_cmr", "medstreambench"]  # fmt: skip
"""All but those with rotated options, which have tests of their own."""


@dataclass(frozen=True)
class Run:
    """A result folder, read back from disk."""

    folder: Path

    @cached_property
    def scores(self) -> dict[str, Any]:
        """Scores of tasks and groups by name."""
        scores = json.loads((self.folder / "scores.json").read_text(encoding="utf-8"))
        return {**scores["tasks"], **scores["groups"]}

    @cached_property
    def manifest(self) -> dict[str, Any]:
        manifest: dict[str, Any] = json.loads(
            (self.folder / "manifest.json").read_text(encoding="utf-8")
        )
        return manifest

    def samples(self, task: str) -> list[dict[str, Any]]:
        lines = (self.folder / "samples" / f"{task}.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def files(self) -> dict[str, bytes]:
        """Bytes of every file but the manifest and the times of requests, which differ between
        runs.
        """
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
            and path.name not in ("manifest.json", "latency.json")
            and path.parent.name != "times"
        }


def random_vlm(**arguments: Any) -> str:
    """Arguments of ``medtasks_vlm`` with random weights: its answers differ from question to
    question.
    """
    from training.tiny import tiny_checkpoint

    named = {"pretrained": tiny_checkpoint(), "device": "cpu", **arguments}
    return ",".join(f"{name}={value}" for name, value in named.items())


def vlm(tasks: list[str], output: Path, *, tokens: int = 8, seed: int = 0, **settings: Any) -> Run:
    """One run of `random_vlm`, of answers of so many tokens."""
    arguments = random_vlm(max_new_tokens=tokens, seed=seed)
    return Run(run_tasks("medtasks_vlm", arguments, tasks, output, **settings))


def baseline(policy: str, tasks: list[str], output: Path, **settings: Any) -> Run:
    """One run of ``medtasks_baseline``."""
    return Run(run_tasks("medtasks_baseline", f"policy={policy}", tasks, output, **settings))
