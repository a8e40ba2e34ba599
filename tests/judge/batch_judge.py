"""The stub judge with a Batch API: files, batches, and what can go wrong with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from medtasks.judge.stub import StubJudge, completion


class BatchJudge(StubJudge):
    """Batches end when they were looked at ``looks`` times; never while ``held``.

    Args:
        looks: how often a batch is reported as in progress.
        faults: by number of the batch (from 0): "refused" as a whole, or "expired", "some fail" or
            "lost line", which spoil every third line.
        **options: as :class:`StubJudge`.

    Attributes:
        files: the content of every file by id.
        batches: every batch by id.
        held: whether batches stay in progress.
        away: how many further looks at a batch end in an error of the server.
        padding: further bytes in the reply to the creation of a batch.
    """

    def __init__(
        self,
        *arguments: Any,
        looks: int = 1,
        faults: Mapping[int, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.held = False
        self.away = 0
        self.refuse_creation = False
        self.padding = 0
        self._looks, self._faults = looks, dict(faults or {})

    def lines(self, number: int) -> list[dict[str, Any]]:
        """The requests of a batch."""
        batch = list(self.batches.values())[number]
        return [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]

    def _routes(self) -> list[web.RouteDef]:
        return [
            *super()._routes(),
            web.post("/v1/files", self._upload),
            web.get("/v1/files/{id}/content", self._content),
            web.post("/v1/batches", self._create),
            web.get("/v1/batches", self._list),
            web.get("/v1/batches/{id}", self._look),
        ]

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert form["purpose"] == "batch"
        name = self._file(form["file"].file.read())  # type: ignore[union-attr]
        return web.json_response({"id": name, "object": "file", "bytes": 1, "created_at": 0, "filename": "x",
                                  "purpose": "batch", "status": "processed"})  # fmt: skip

    def _file(self, content: bytes) -> str:
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return name

    async def _content(self, request: web.Request) -> web.Response:
        return web.Response(body=self.files[request.match_info["id"]])

    async def _create(self, request: web.Request) -> web.Response:
        if self.refuse_creation:
            return web.json_response({"error": {"message": "no batches for you"}}, status=403)
        name = f"batch-{len(self.batches)}"
        self.batches[name] = {
            "id": name, "object": "batch", "created_at": 0, "status": "in_progress", "looks": 0,
            "request_counts": {"total": 0, "completed": 0, "failed": 0}, **await request.json(),
        }  # fmt: skip
        return web.json_response({**self.batches[name], "padding": "x" * self.padding})

    async def _list(self, _: web.Request) -> web.Response:
        return web.json_response(
            {"object": "list", "data": list(self.batches.values()), "has_more": False}
        )

    async def _look(self, request: web.Request) -> web.Response:
        batch = self.batches.get(request.match_info["id"])
        if batch is None:
            return web.json_response({"error": {"message": "no such batch"}}, status=404)
        if self.away:
            self.away -= 1
            soon = {"retry-after-ms": "1"}
            return web.json_response({"error": {"message": "back soon"}}, status=503, headers=soon)
        batch["looks"] += 1
        if batch["status"] == "in_progress" and batch["looks"] >= self._looks and not self.held:
            self._finish(batch)
        return web.json_response(batch)

    def _finish(self, batch: dict[str, Any]) -> None:
        number = int(batch["id"].rpartition("-")[2])
        fault = self._faults.get(number, "")
        if fault == "refused":
            problems = {"object": "list", "data": [{"message": "the model has no batches"}]}
            batch |= {"status": "failed", "errors": problems}
            return
        good, bad = [], []
        for place, line in enumerate(self.lines(number)):
            result = {"id": "r", "custom_id": line["custom_id"], "response": None, "error": None}
            spoilt = fault if place % 3 == 0 else ""
            if spoilt == "expired":
                bad.append(
                    {
                        **result,
                        "error": {"code": "batch_expired", "message": "This request expired."},
                    }
                )
            elif spoilt == "some fail":
                body = {"error": {"message": "try again"}}
                bad.append(
                    {**result, "response": {"status_code": 500, "request_id": "q", "body": body}}
                )
            elif spoilt != "lost line":
                body = completion(line["body"], self._decide(line["body"]))
                result |= {"response": {"status_code": 200, "request_id": "q", "body": body}}
                good.append(result)
        good.reverse()  # the order is not that of the requests
        for key, rows in (("output_file_id", good), ("error_file_id", bad)):
            if rows:
                batch[key] = self._file(
                    "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()
                )
        batch["status"] = "expired" if fault == "expired" else "completed"
