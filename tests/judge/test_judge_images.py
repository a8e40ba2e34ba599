"""Images for judges that can see: what is sent, and what is said of those that cannot be."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rubric_cases import case
from test_judge_pipeline import judge as judge_all

from medtasks.catalog.rubric import judge_prompt, load_rubric
from medtasks.catalog.scales import Rubric
from medtasks.core.errors import MediaError
from medtasks.judge.pipeline import ImageSource, Question, Verdicts, user_message
from medtasks.judge.stub import StubJudge

SEEING, BLIND = load_rubric("med_cmr_medreason"), load_rubric("med_cmr_open")


def document() -> dict[str, Any]:
    """One that both rubrics judge."""
    return case("med_cmr_medreason")[1]


def picture(width: int = 60, height: int = 40) -> Image.Image:
    """A smooth gradient, so that smaller copies look alike."""
    x, y = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    return Image.fromarray(np.stack([x, y, 255 - x], -1).astype(np.uint8))


def sent(loaded: Image.Image, side: int = 1024) -> tuple[str, bytes]:
    """Kind and bytes of the data URL."""
    content = user_message("text", [ImageSource("key", lambda: loaded)], side)["content"]
    head, data = content[0]["image_url"]["url"].split(",")
    return head, base64.b64decode(data)


def shown(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


def test_images_come_before_the_text_in_their_order_and_what_cannot_be_shown_is_named() -> None:
    images = [ImageSource(str(side), lambda side=side: picture(side, side)) for side in (10, 20)]  # type: ignore[misc]
    message = user_message("What?", images, 1024)
    assert [part["type"] for part in message["content"]] == ["image_url", "image_url", "text"]
    sizes = [shown(base64.b64decode(part["image_url"]["url"].split(",")[1])).size for part in message["content"][:2]]
    assert sizes == [(10, 10), (20, 20)]
    assert message["content"][2]["text"] == "What?"
    assert user_message("What?", [], 1024) == {"role": "user", "content": "What?"}
    with pytest.raises(MediaError, match="image 0123456789abcdef cannot be shown to the judge: the archive is locked"):
        user_message("text", [ImageSource("0123456789abcdef-and-more", fail)], 1024)


@pytest.mark.parametrize(("size", "side"), [((300, 200), (60, 40)), ((64, 48), (64, 48))])
def test_an_image_is_sent_as_a_jpeg_of_good_quality_and_a_larger_one_is_made_smaller(
    size: tuple[int, int], side: tuple[int, int]
) -> None:
    whole = picture(*size)
    head, data = sent(whole, side[0])
    assert head == "data:image/jpeg;base64"
    expected = np.asarray(picture(*size).resize(side, Image.Resampling.LANCZOS), float)
    assert np.abs(np.asarray(shown(data).convert("RGB"), float) - expected).max() < 12  # grey levels
    assert whole.size == size  # it may be shared


def fail() -> Image.Image:
    raise RuntimeError("the archive is locked")


def judge(
    stub: StubJudge, store: Path, shown: tuple[ImageSource, ...], rubric: Rubric = SEEING, **settings: Any
) -> Verdicts:
    return judge_all(stub, store, [Question("one", document(), "It is so.", shown)], rubric, **settings)


TWO = (ImageSource("a", lambda: picture(10, 10)), ImageSource("b", lambda: picture(20, 20)))


def content(stub: StubJudge) -> Any:
    return stub.requests[-1].body["messages"][0]["content"]


def test_a_judge_that_can_see_is_shown_the_images_of_a_rubric_that_allows_it(tmp_path: Path) -> None:
    prompt = judge_prompt(SEEING, document(), "It is so.")
    with StubJudge() as stub:
        blind = judge(stub, tmp_path / "v", TWO)
        assert content(stub) == prompt
        seeing = judge(stub, tmp_path / "v", TWO, images=True)
        assert [part["type"] for part in content(stub)] == ["image_url", "image_url", "text"]
        assert content(stub)[-1]["text"] == prompt
        unseen = judge(stub, tmp_path / "v", (), images=True)
        other_rubric = judge(stub, tmp_path / "v", TWO, BLIND, images=True)
        assert isinstance(content(stub), str)
    assert seeing.unjudged == other_rubric.unjudged == {}
    assert blind.by_question["one"].key == unseen.by_question["one"].key != seeing.by_question["one"].key
    assert unseen.spent.requests == 0


def test_other_images_another_order_or_size_is_another_question(tmp_path: Path) -> None:
    with StubJudge() as stub:
        keys = [
            judge(stub, tmp_path / "v", images, images=True, image_side=side).by_question["one"].key
            for images, side in ((TWO, 1024), (TWO[::-1], 1024), (TWO[:1], 1024), (TWO, 512), (TWO, 1024))
        ]
        assert len(stub.requests) == 4
    assert (len(set(keys)), keys[-1]) == (4, keys[0])


def test_a_sample_whose_image_cannot_be_loaded_is_unjudged_and_tried_again(tmp_path: Path) -> None:
    with StubJudge() as stub:
        result = judge(stub, tmp_path / "v", (TWO[0], ImageSource("b", fail)), images=True)
        assert stub.requests == []
        assert result.unjudged == {"one": "question: image b cannot be shown to the judge: the archive is locked"}
        assert judge(stub, tmp_path / "v", TWO, images=True).unjudged == {}
