"""The viewer of pictures in a real browser: what it draws is compared with what NumPy computes from
the pictures.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from browser import Reader, check_accessibility
from invented_runs import MODELS, write_run_of
from PIL import Image
from view_server import Server, serving

pytestmark = pytest.mark.slow

VISITS, STREAM = "mi_cxr_tel_single", "medstreambench_proactive"
EDGE = 4  # pixels of the outline of the active picture


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("results")
    write_run_of(folder, MODELS[1], [VISITS, STREAM])
    with serving([folder]) as started:
        yield started


@pytest.fixture
def reader(browser: Any, server: Server) -> Iterator[Reader]:
    with Reader(browser, server.address) as started:
        yield started


def opened(reader: Reader, task: str, key: str = "z") -> Any:
    """The page of a task's last sample, with its first picture enlarged by a key."""
    page = reader.open(f"samples.html?{urlencode({'task': task})}")
    page.locator(".list tbody th a").last.click()
    page.wait_for_url("**/sample.html*")
    page.locator("media-zone:defined").wait_for()
    page.keyboard.press(key)
    page.locator(".state").get_by_text("1 of").wait_for()
    return page


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def wait_for_state(page: Any, text: str) -> None:
    page.locator(".state").get_by_text(text).wait_for()


def wait_for_captions(page: Any, captions: list[str]) -> None:
    page.wait_for_function(
        "captions => [...document.querySelectorAll('.pane:not([hidden]) figcaption')]"
        ".map(each => each.textContent).join() === captions.join()",
        arg=captions,
    )


def drawn(page: Any, number: int = 0) -> np.ndarray:
    """The grey levels on the screen of the stage of a picture, by its number among those shown."""
    shot = page.locator(".pane:not([hidden]) .stage").nth(number).screenshot()
    return np.asarray(Image.open(io.BytesIO(shot)).convert("L"), dtype=float)


def inside(levels: np.ndarray) -> np.ndarray:
    """Without the captions at the top and the divider's handle at the bottom."""
    height, width = levels.shape
    return levels[40 : height - 60, EDGE : width - EDGE]


def of_square(levels: np.ndarray) -> np.ndarray:
    """Without what surrounds a square picture that fits the height of its stage."""
    middle, half = levels.shape[1] // 2, levels.shape[0] // 2 - 2 * EDGE
    return levels[40:-60, middle - half : middle + half]


def check_levels(levels: np.ndarray, expected: np.ndarray) -> None:
    """The grey levels are as expected, but for rounding and for single pixels at seams of tiles."""
    differences = np.abs(of_square(levels) - expected)
    assert differences.mean() < 0.7
    assert np.quantile(differences, 0.999) <= 2


def scales(page: Any) -> list[float]:
    """How many screen pixels a picture's pixel takes, for all pictures shown."""
    return page.locator(".pane:not([hidden]) img").evaluate_all(
        "images => images.map(image => image.getBoundingClientRect().width / image.naturalWidth)"
    )


def lefts(page: Any) -> list[float]:
    """The places of the left sides of all pictures shown, from those of their stages."""
    return page.locator(".pane:not([hidden]) img").evaluate_all(
        "images => images.map(image => image.getBoundingClientRect().left - "
        "image.parentElement.getBoundingClientRect().left)"
    )


def test_window_and_inversion_are_the_linear_map_of_grey_levels(reader: Reader) -> None:
    page = opened(reader, VISITS)
    stored = of_square(drawn(page))
    assert stored.std() > 10
    press(page, "d", "d", "c", "c")
    wait_for_state(page, "level 144, width 223")
    shown = np.clip((stored - 143.5) / 223 * 255 + 127.5, 0, 255)
    check_levels(drawn(page), shown)
    press(page, "i")
    check_levels(drawn(page), 255 - shown)
    assert drawn(page)[40:-60, EDGE:100].max() == 0  # what surrounds the picture stays black
    press(page, "x")
    np.testing.assert_array_equal(of_square(drawn(page)), stored)

    press(page, "a")
    picture = np.asarray(_picture_file(page).convert("RGB"), dtype=float).mean(axis=2)
    low, high = np.quantile(picture, [0.01, 0.99])
    level = float(page.locator("[name=level]").input_value())
    width = float(page.locator("[name=width]").input_value())
    assert level == pytest.approx((low + high) / 2, abs=3)
    assert width == pytest.approx(high - low, abs=6)
    assert page.locator("[name=preset]").input_value() == "automatic"
    page.locator("[name=preset]").select_option("bright")
    wait_for_state(page, "level 191, width 128")
    shown = np.clip((stored - 191) / 128 * 255 + 127.5, 0, 255)
    check_levels(drawn(page), shown)


def _picture_file(page: Any) -> Image.Image:
    """The first picture as the server sends it."""
    answer = page.request.get(page.locator("a[data-zoom]").first.evaluate("link => link.href"))
    return Image.open(io.BytesIO(answer.body()))


def test_wheel_drag_and_click_zoom_and_move_the_picture(reader: Reader) -> None:
    page = opened(reader, VISITS)
    box = page.locator(".pane:not([hidden]) .stage").bounding_box()
    middle = box["x"] + box["width"] / 2
    x, y = middle - 100, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    before, left = scales(page)[0], lefts(page)[0]
    pointed_at = (x - box["x"] - left) / before
    page.mouse.wheel(0, -200)
    wait_for_state(page, f"{100 * before * 1.25**2:.0f} %")
    assert scales(page)[0] == pytest.approx(before * 1.25**2)
    assert (x - box["x"] - lefts(page)[0]) / scales(page)[0] == pytest.approx(pointed_at)

    left, state = lefts(page)[0], page.locator(".state").inner_text()
    page.mouse.down()
    page.mouse.move(x + 50, y + 20)
    page.mouse.up()
    assert lefts(page)[0] == pytest.approx(left + 50)
    assert page.locator(".state").inner_text() == state
    page.keyboard.down("Shift")
    page.mouse.down()
    page.mouse.move(x + 10, y - 20)
    page.mouse.up()
    page.keyboard.up("Shift")
    wait_for_state(page, "level 108, width 235")
    assert lefts(page)[0] == pytest.approx(left + 50)
    press(page, "t")  # dragging changes the window
    page.mouse.down()
    page.mouse.move(x + 30, y - 20)
    page.mouse.up()
    wait_for_state(page, "level 108, width 245")

    press(page, "f")
    assert scales(page)[0] == pytest.approx(before)
    press(page, "o")
    assert scales(page)[0] == pytest.approx(1)
    wait_for_state(page, "100 %")
    page.mouse.click(middle, y)
    assert scales(page)[0] == pytest.approx(before)


def test_visits_change_together_or_one_at_a_time(reader: Reader) -> None:
    page = opened(reader, VISITS)
    press(page, "m", "m", "m")
    page.locator(".pane:not([hidden])").nth(4).wait_for()
    before, at_first = scales(page), inside(drawn(page, 3))
    press(page, "+", "Shift+ArrowLeft", "d")
    assert scales(page) == pytest.approx([1.25 * scale for scale in before])
    assert len({round(left, 3) for left in lefts(page)}) == 1
    together = [drawn(page, number) for number in range(5)]
    assert np.abs(inside(together[3]) - at_first).mean() > 5

    press(page, "y", "ArrowRight")  # the second picture alone
    wait_for_state(page, "Image 2 of 5")
    press(page, "+", "i")
    assert scales(page) == pytest.approx(
        [scale * 1.25 ** (1 + (n == 1)) for n, scale in enumerate(before)]
    )
    for number in (2, 3, 4):
        np.testing.assert_array_equal(inside(drawn(page, number)), inside(together[number]))
    assert np.abs(inside(drawn(page, 1)) - inside(together[1])).mean() > 20
    press(page, "y", "x")
    assert scales(page) == pytest.approx(before)
    np.testing.assert_array_equal(inside(drawn(page, 3)), at_first)


def test_a_swipe_shows_one_picture_left_and_the_other_right_of_the_divider(reader: Reader) -> None:
    reader.page.set_viewport_size({"width": 1600, "height": 900})  # the tools are in one line
    page = opened(reader, VISITS)
    first = drawn(page)
    press(page, "End")
    wait_for_state(page, "Image 5 of 5")
    last = drawn(page)
    page.get_by_role("button", name="Swipe").click()
    page.locator("[name=left]").select_option(index=0)
    page.locator("[name=right]").select_option(index=4)
    divider = page.get_by_role("slider", name="Divider")
    divider.wait_for()
    wait_for_captions(page, ["1", "5"])
    for percent in (50, 25):
        divider.fill(str(percent))
        shown = drawn(page)
        width = shown.shape[1]
        place = round(12 + (width - 24) * percent / 100)
        assert shown.shape == first.shape
        left, right = slice(EDGE, place - EDGE), slice(place + EDGE, width - EDGE)
        np.testing.assert_array_equal(shown[40:-60, left], first[40:-60, left])
        np.testing.assert_array_equal(shown[40:-60, right], last[40:-60, right])
    divider.focus()
    press(page, "ArrowRight")  # the divider's key, not the next picture
    assert divider.input_value() == "25.5"
    page.get_by_role("button", name="Side by side").click()
    wait_for_captions(page, ["1", "5"])
    page.locator("[name=left]").select_option(index=4)  # the sides change places
    page.wait_for_function("document.querySelector('[name=right]').value === '0'")


def test_the_viewer_is_used_by_keyboard_and_leaves_the_pages_keys_alone(reader: Reader) -> None:
    page = opened(reader, VISITS)
    address = page.url
    page.evaluate(
        "window.left = []; addEventListener('keydown', event => "
        "{ if (!event.defaultPrevented) window.left.push(event.key); })"
    )
    press(page, *"npwrbu0123456789", "Enter", "Backspace")
    assert page.evaluate("window.left") == [*"npwrbu0123456789", "Enter", "Backspace"]
    assert page.url == address
    assert page.locator("dialog").is_visible()
    wait_for_state(page, "level 128, width 255. Image 1 of 5")
    assert page.locator(".help").is_hidden()
    press(page, "?")
    assert page.locator(".help").is_visible()
    press(page, "ArrowRight", "ArrowRight", "ArrowLeft")
    wait_for_state(page, "Image 2 of 5")
    names = set()
    for _ in range(20):
        press(page, "Tab")
        names.add(
            page.evaluate("document.activeElement.textContent || document.activeElement.name")
        )
    assert names >= {
        "One",
        "Swipe",
        "Fit",
        "1:1",
        "level",
        "width",
        "Invert",
        "Together",
        "Reset",
        "Close",
    }
    page.locator("[name=level]").focus()
    press(page, "ArrowRight", "i")  # the slider's key, and one of the viewer
    wait_for_state(page, "Image 2 of 5")
    assert page.locator("[name=level]").input_value() == "128"
    assert page.get_by_role("button", name="Invert").get_attribute("aria-pressed") == "true"
    press(page, "Escape")
    assert page.locator("dialog").is_hidden()
    with page.expect_navigation(wait_until="commit"):
        press(page, "p")


def test_frames_are_on_the_time_axis_with_the_window_that_the_model_saw(reader: Reader) -> None:
    page = opened(reader, STREAM)
    times = page.locator(".strip figcaption").all_inner_texts()
    first, window, last = page.locator(".times p span").all_inner_texts()
    start, end = re.search(r"saw, (.+) to (.+);", window).groups()
    assert (float(start), float(end)) == (float(times[0]), float(times[-1]))
    first, last = float(first), float(last)
    bar = page.locator(".times rect")
    assert float(bar.get_attribute("x").rstrip("%")) == pytest.approx(
        100 * (float(start) - first) / (last - first)
    )
    assert float(bar.get_attribute("width").rstrip("%")) == pytest.approx(
        100 * (float(end) - float(start)) / (last - first)
    )
    ticks = page.locator(".times line").evaluate_all(
        "lines => lines.map(line => line.getAttribute('x1'))"
    )
    expected = [100 * (float(time) - first) / (last - first) for time in times]
    assert [float(tick.rstrip("%")) for tick in ticks] == pytest.approx(expected)
    slider = page.get_by_role("slider", name="Time of the frame")
    for number, time in enumerate(times, start=1):
        assert (
            slider.get_attribute("aria-valuetext") == f"Frame {number} of {len(times)}, at {time}"
        )
        assert float(slider.input_value()) == pytest.approx(float(time))
        if number < len(times):
            press(page, "ArrowRight")
            wait_for_state(page, f"Frame {number + 1} of")
    slider.focus()
    press(page, "Home")
    wait_for_state(page, "Frame 1 of")
    slider.fill(times[1])
    wait_for_state(page, "Frame 2 of")
    press(page, "+", "i", "ArrowRight")  # the next frame is drawn as this one
    wait_for_state(page, "Frame 3 of")
    assert page.get_by_role("button", name="Invert").get_attribute("aria-pressed") == "true"


def test_two_fingers_zoom_on_a_phone_that_does_not_scroll_sideways(reader: Reader) -> None:
    page = reader.page
    page.set_viewport_size({"width": 390, "height": 844})
    opened(reader, VISITS)
    session = page.context.new_cdp_session(page)
    before = scales(page)[0]
    for kind, apart in (
        ("touchStart", 50),
        ("touchMove", 60),
        ("touchMove", 100),
        ("touchEnd", None),
    ):
        points = (
            []
            if apart is None
            else [{"x": 195 - apart, "y": 500, "id": 0}, {"x": 195 + apart, "y": 500, "id": 1}]
        )
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert scales(page)[0] == pytest.approx(2 * before, rel=0.05)
    for layout in ("pair", "swipe", "all", "one"):
        press(page, "m")
        page.locator(f"dialog[data-layout={layout}]").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.locator("dialog").evaluate("dialog => dialog.scrollWidth") <= 390
        for button in page.locator("dialog button:visible").all():
            box = button.bounding_box()
            assert 0 <= box["x"] < box["x"] + box["width"] <= 390
            assert min(box["width"], box["height"]) >= 24
        assert page.locator(".panes").bounding_box()["height"] > 500


@pytest.mark.parametrize("task", [VISITS, STREAM])
def test_axe_finds_nothing_serious_in_the_viewer(reader: Reader, task: str) -> None:
    page = opened(reader, task)
    press(page, "?", "m", "m")
    check_accessibility(page)
