"""What trainers read and pass: a task's questions as rows of training data, and completions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medtasks.catalog.benchmark import Document
from medtasks.catalog.spec import load_spec

Completion = str | Sequence[Mapping[str, Any]]
"""What a model generated: a text, or chat messages."""


@dataclass(frozen=True)
class QuestionReader:
    """Reads rows of training data when they are used; ``documents`` are by sample id."""

    task: str
    documents: Mapping[str, Document]

    def __call__(self, batch: Mapping[str, Sequence[str]]) -> dict[str, list[Any]]:
        """The prompts and images of a batch of sample ids."""
        spec = load_spec(self.task)
        messages_of = spec.function("doc_to_messages")
        settings = spec.resolved["lmms_eval_specific_kwargs"]
        rows: dict[str, list[Any]] = {"prompt": [], "images": [], "sample_id": []}
        for sample_id in batch["sample_id"]:
            messages = messages_of(self.documents[sample_id], settings)
            prompt, images = _without_images(messages)
            rows["prompt"].append(prompt)
            rows["images"].append(images)
            rows["sample_id"].append(sample_id)
        return rows


def _without_images(
    messages: Sequence[Mapping[str, Any]],
) -> tuple[list[dict[str, Any]], list[Any]]:
    """Chat messages with a placeholder for each image, and the images in order."""
    prompt: list[dict[str, Any]] = []
    images: list[Any] = []
    for message in messages:
        parts: list[dict[str, Any]] = []
        for part in message["content"]:
            if part["type"] == "image":
                images.append(part["url"])
                parts.append({"type": "image"})
            else:
                parts.append(part)
        prompt.append({"role": message["role"], "content": parts})
    return prompt, images


def response_of(completion: Completion) -> str:
    """The response in a completion: the text itself, or that of the last message."""
    if isinstance(completion, str):
        return completion
    if not completion:
        return ""
    content = completion[-1].get("content") or ""
    if isinstance(content, str):
        return content
    texts = [part["text"] for part in content if part.get("type") == "text"]
    return "".join(texts)
