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
from test_judge_pipeline import Verdicts
from test_judge_pipeline import judge as judge_all

from medtasks.catalog.judge_prompt import judge_prompt
from medtasks.catalog.rubric import Rubric
from medtasks.catalog.rubric_files import load_rubric
from medtasks.core.errors import MediaError
from medtasks.judge.pipeline import Question
from medtasks.judge.stub import StubJudge
from medtasks.judge.user_message import ImageSource, user_message

SEEING, BLIND = load_rubric("med_cmr_medreason"), load_rubric("med_cmr_open")


def document() -> dict[str, Any]:
    """One that both rubrics judge."""
    return case("med_cmr_medreason")[1]


def picture(width: int = 60, height: int = 40) -> Image.Image:
    """A smooth gradient, so that smaller copies look alike."""
    x, y = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    return Image.fromarray(np.stack([x, y, 255 - x], -1).astype(np.uint8))


def fail() -> Image.Image:
    raise RuntimeError("the archive is locked")


def shown(part: Any) -> Image.Image:
    head, data = part["image_url"]["url"].split(",")
    assert head == "data:image/jpeg;base64"
    return Image.open(io.BytesIO(base64.b64decode(data)))


TWO = (ImageSource("a", lambda: picture(10, 10)), ImageSource("b", lambda: picture(20, 20)))


def test_images_come_before_the_text_in_their_order_and_what_cannot_be_shown_is_named() -> None:
    first, second, text = user_message("What?", TWO, 1024)["content"]
    assert (shown(first).size, shown(second).size) == ((10, 10), (20, 20))
    assert text == {"type": "text", "text": "What?"}
    assert user_message("What?", [], 1024) == {"role": "user", "content": "What?"}
    with pytest.raises(
        MediaError,
        match="image 0123456789abcdef cannot be shown to the judge: the archive is locked",
    ):
        user_message("text", [ImageSource("0123456789abcdef-and-more", fail)], 1024)


@pytest.mark.parametrize(("size", "side"), [((300, 200), (60, 40)), ((64, 48), (64, 48))])
def test_an_image_is_sent_as_a_jpeg_of_good_quality_and_a_larger_one_is_made_smaller(
    size: tuple[int, int], side: tuple[int, int]
) -> None:
    whole = picture(*size)
    sent, _ = user_message("text", [ImageSource("key", lambda: whole)], side[0])["content"]
    expected = np.asarray(picture(*size).resize(side, Image.Resampling.LANCZOS), float)
    assert (
        np.abs(np.asarray(shown(sent).convert("RGB"), float) - expected).max() < 12
    )  # grey levels
    assert whole.size == size  # it may be shared


def judge(
    stub: StubJudge,
    store: Path,
    pictures: tuple[ImageSource, ...],
    rubric: Rubric = SEEING,
    **settings: Any,
) -> Verdicts:
    return judge_all(
        stub, store, [Question("one", document(), "It is so.", pictures)], rubric, **settings
    )


def test_a_judge_that_can_see_is_shown_the_images_of_a_rubric_that_allows_it(
    tmp_path: Path,
) -> None:
    with StubJudge() as stub:
        blind = judge(stub, tmp_path / "v", TWO)
        seeing = judge(stub, tmp_path / "v", TWO, images=True)
        unseen = judge(stub, tmp_path / "v", (), images=True)
        other_rubric = judge(stub, tmp_path / "v", TWO, BLIND, images=True)
        asked = [body["messages"][0]["content"] for body in stub.requests]
    prompt = judge_prompt(SEEING, document(), "It is so.")
    assert asked[0] == prompt
    assert [part["type"] for part in asked[1]] == ["image_url", "image_url", "text"]
    assert asked[1][-1]["text"] == prompt
    assert isinstance(asked[2], str)
    assert seeing.unjudged == other_rubric.unjudged == {}
    assert (
        blind.by_question["one"].key
        == unseen.by_question["one"].key
        != seeing.by_question["one"].key
    )
    assert unseen.spent.requests == 0


def test_other_images_another_order_or_size_is_another_question(tmp_path: Path) -> None:
    with StubJudge() as stub:
        keys = [
            judge(stub, tmp_path / "v", images, images=True, image_side=side).by_question["one"].key
            for images, side in (
                (TWO, 1024),
                (TWO[::-1], 1024),
                (TWO[:1], 1024),
                (TWO, 512),
                (TWO, 1024),
            )
        ]
        assert len(stub.requests) == 4
    assert (len(set(keys)), keys[-1]) == (4, keys[0])


def test_a_sample_whose_image_cannot_be_loaded_is_unjudged_and_tried_again(tmp_path: Path) -> None:
    with StubJudge() as stub:
        result = judge(stub, tmp_path / "v", (TWO[0], ImageSource("b", fail)), images=True)
        assert stub.requests == []
        assert result.unjudged == {
            "one": "question: image b cannot be shown to the judge: the archive is locked"
        }
        assert judge(stub, tmp_path / "v", TWO, images=True).unjudged == {}
