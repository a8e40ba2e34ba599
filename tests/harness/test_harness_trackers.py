"""The harness's own trackers carry our scores: Weights and Biases offline, and a hub on this machine."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from local_server import Answer, LocalServer

pytestmark = pytest.mark.slow

TASK = "med_cmr_mcq_msi"
RUN = ("-m", "lmms_eval", "--model", "medtasks_baseline", "--model_args", "policy=oracle", "--tasks", TASK)


def test_a_hub_is_sent_our_scores(python: Any, tmp_path: Path) -> None:
    files: dict[str, bytes] = {}

    def hub(path: str, body: bytes) -> Answer:
        """As much of the hub's API as an upload of small files needs."""
        reply: dict[str, Any] = {"id": "lab/x", "siblings": [], "tags": [], "private": False}
        if "/preupload/" in path:
            asked = json.loads(body)["files"]
            reply = {"files": [{"path": one["path"], "uploadMode": "regular", "shouldIgnore": False} for one in asked]}
        elif "/commit/" in path:
            for entry in map(json.loads, body.splitlines()):
                if entry["key"] == "file":
                    files[entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
            reply = {"commitUrl": "http://127.0.0.1/commit/1", "commitOid": "1", "success": True}
        elif body:
            reply = {"url": "http://127.0.0.1/datasets/lab/x", "name": "lab/x"}
        return 200, {"Content-Type": "application/json"}, json.dumps(reply).encode()

    with LocalServer(hub) as server:
        logged = "hub_results_org=lab,results_repo_name=x,push_results_to_hub=True"
        done = python(
            *RUN, "--output_path", str(tmp_path / "out"), "--hf_hub_log_args", logged,
            HF_ENDPOINT=server.url, HF_TOKEN="hf_x", HF_HUB_OFFLINE="0",
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    sent = [json.loads(content) for path, content in files.items() if path.endswith("_results.json")]
    assert [one["results"][TASK]["accuracy,medtasks"] for one in sent] == [1.0], (sorted(files), done.stdout[-3000:])
