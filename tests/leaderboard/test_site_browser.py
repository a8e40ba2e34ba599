"""The site in a real browser, from files: what readers do with it, and what strangers' text must
not do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from boards import board, held_samples, hostile_board, large_board, sample, sample_text
from browser import Reader, check_accessibility, check_responses_on_screen
from medtasks.leaderboard.site.run_samples import Answers, SampleKey
from medtasks.leaderboard.written_site import write_site
from PIL import Image

from medtasks.scoring.verification_outcome import Verification

pytestmark = pytest.mark.slow

CHOICES = {
    "compare.html": "#a=aurora-72b&b=aurora-8b&task=samples%2Fpond_vqa%2Fpond_vqa_level1",
    "samples.html": "?task=pond_vqa_level1",
}
"""What is chosen on the pages that show nothing without a choice."""
NAMES = "#headline tbody tr:not(.with):not([hidden]) th a"


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("sites")
    write_site(board(), folder / "board", samples=sample_text())
    write_site(hostile_board(), folder / "hostile", samples=sample_text(hostile=True))
    write_site(large_board(), folder / "large")
    return {name: folder / name for name in ("board", "hostile", "large")}


@pytest.fixture
def reader(browser: Any, sites: dict[str, Path]) -> Iterator[Reader]:
    with Reader(browser, sites["board"]) as started:
        yield started


def page_names(site: Path) -> list[str]:
    """The pages of a site, but of the models' pages, which are alike, only the first."""
    files = sorted(path.name for path in site.glob("*.html"))
    first_model = next(name for name in files if name.startswith("model-"))
    return [name for name in files if name == first_model or not name.startswith("model-")]


def names(page: Any, selector: str = NAMES) -> list[str]:
    return page.locator(selector).all_inner_texts()


def choose(page: Any, **wanted: str) -> None:
    for name, value in wanted.items():
        page.locator(f"#filters [name={name}]").select_option(value)


def fragment(page: Any) -> str:
    return page.evaluate("location.hash")


def test_heads_sort_by_number_with_missing_values_last(reader: Reader) -> None:
    page = reader.open("benchmark-stream_qa.html")
    for table in page.get_by_label("Table", exact=True).all():
        table.check()
    delay = page.get_by_role("columnheader", name="Delay")
    delay.get_by_role("button").click()  # 0 is best: the first click puts the lowest first
    cells = page.locator("#parts tbody tr:not(.with) td:nth-child(4)").all()
    values = [float(cell.get_attribute("data-v")) for cell in cells]
    assert values == sorted(values)
    assert delay.get_attribute("aria-sort") == "ascending"

    judged = page.get_by_role("columnheader", name="Judged answers")
    for direction in ("descending", "ascending"):
        judged.get_by_role("button").click()
        assert judged.get_attribute("aria-sort") == direction
        assert (
            names(page, "#parts tbody tr:not(.with) th a")[-1] == "Birch Flash"
        )  # it has no value
    assert delay.get_attribute("aria-sort") is None


def test_what_models_used_is_a_table_that_sorts(reader: Reader) -> None:
    page = reader.open("benchmark-pond_vqa.html#usage")
    heads = page.locator("#usage-table thead th").evaluate_all(
        "heads => heads.map(head => head.dataset.k)"
    )
    assert heads == [
        *(
            "model",
            "pond_vqa.rougeL",
            "usage.samples",
            "usage.rate",
            "usage.seconds",
            "usage.first",
            "usage.tokens",
        ),
        *("usage.prompt", "usage.output", "usage.device"),
    ]
    page.locator("#usage-table th[data-k='usage.prompt'] button").click()
    models = names(page, "#usage-table tbody th a")
    assert (len(models), models[-1]) == (5, "Birch Flash")  # its back-end counts no tokens

    page = reader.open("model-aurora-72b.html")
    runs = page.get_by_role("region", name="Usage of the runs")
    assert runs.locator("tbody tr").count() == 1  # the run without usage is left out
    assert "740" not in runs.inner_text()
    assert "0.37" in runs.inner_text()  # seconds per sample


def test_the_keyboard_alone_sorts_and_a_blind_row_stays_with_its_model(reader: Reader) -> None:
    page = reader.open("benchmark-pond_vqa.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.get_by_role("button", name="Model").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#headline thead th").first.get_attribute("aria-sort")
    rows = page.locator("#headline tbody tr")
    place = rows.evaluate_all("rows => rows.findIndex(row => row.classList.contains('with'))")
    assert (
        rows.nth(place).get_attribute("data-m")
        == rows.nth(place - 1).get_attribute("data-m")
        == "aurora-72b"
    )


def test_filters_narrow_all_tables_and_say_how_many_are_left(reader: Reader) -> None:
    page = reader.open("benchmark-pond_vqa.html")
    choose(page, family="Aurora")
    assert set(names(page)) == {"Aurora-VL 72B", "Aurora-VL 8B"}
    assert set(names(page, "#classes tbody tr:not(.with):not([hidden]) th a")) == {
        "Aurora-VL 72B",
        "Aurora-VL 8B",
    }
    choose(page, size="m")
    assert names(page) == ["Aurora-VL 8B"]
    assert page.locator("#count").inner_text() == "1 of 5 models"
    page.get_by_role("button", name="Reset view").click()
    page.get_by_label("Find").fill("MED")
    assert names(page) == ["Cedar-Med 4B"]
    page.get_by_label("Find").fill("")
    choose(page, trained="unknown")
    assert names(page) == ["Birch Flash"]
    page.get_by_role("button", name="Reset view").click()
    choose(page, type="baseline")
    assert names(page) == ["Uniform guessing"]


def test_columns_and_published_rows_can_be_hidden(reader: Reader) -> None:
    page = reader.open("benchmark-pond_vqa.html")
    page.locator(".menu summary").first.click()
    chrf = page.locator(".menu[open]").get_by_label("chrF points")
    chrf.uncheck()
    assert page.locator("#headline thead th:not([hidden])").count() == 9
    assert page.locator("#headline tbody tr").first.locator(":scope > :not([hidden])").count() == 9
    page.keyboard.press("Escape")
    assert not chrf.is_visible()
    assert page.get_by_role("heading", name="Published, not re-run").is_visible()
    page.get_by_label("Published rows").uncheck()
    assert not page.get_by_role("heading", name="Published, not re-run").is_visible()


def test_the_address_holds_the_view(reader: Reader) -> None:
    page = reader.open("benchmark-pond_vqa.html")
    page.locator("#headline thead button").nth(4).click()
    choose(page, type="general")
    page.get_by_label("Published rows").uncheck()
    page.locator(".menu summary").first.click()
    page.locator(".menu[open]").get_by_label("Size").uncheck()
    view, address = page.locator("#headline").inner_text(), fragment(page)

    restored = reader.open(f"benchmark-pond_vqa.html{address}")
    assert restored.locator("#headline").inner_text() == view
    assert restored.locator("#filters [name=type]").input_value() == "general"
    assert not restored.get_by_label("Published rows").is_checked()
    assert fragment(restored) == address
    restored.evaluate("location.hash = 'q=72b'")
    restored.wait_for_function("document.getElementById('count').textContent.startsWith('1 of')")
    assert restored.locator("#headline th[aria-sort], #headline th[hidden]").count() == 0
    page = reader.open(
        "benchmark-pond_vqa.html#sort=headline:none:up&sort=x&hide=%00&family=nobody&q="
    )
    assert len(names(page)) == 5  # nonsense is ignored


def test_two_models_are_compared_with_tests_and_samples(reader: Reader) -> None:
    page = reader.open("compare.html")
    page.get_by_label("First model").select_option("aurora-8b")
    page.get_by_label("Second model").select_option("aurora-72b")
    tests = page.get_by_role("region", name="Tests of the headline scores")
    tests.wait_for()
    ranking = board().benchmarks[1].rankings[0]
    pair = next(
        one for one in ranking.pairs if {one.first, one.second} == {"aurora-8b", "aurora-72b"}
    )
    assert pair.first == "aurora-72b"  # stored the other way round, so everything is turned here
    row = tests.get_by_role("row").filter(has_text="Series-MCQ").inner_text()
    assert f"−{100 * pair.difference:.1f}" in row
    assert f"−{100 * pair.high:.1f} to −{100 * pair.low:.1f}" in row
    assert f"{pair.losses} : {pair.wins}" in row

    page.locator("#samples [name=task]").select_option("samples/pond_vqa/pond_vqa_level1")
    page.locator("#samples [name=by]").select_option("rougeL")
    page.locator("#samples [name=show]").select_option("second")
    page.locator(".sample").first.wait_for()
    samples = sample_text()
    first, second = (
        {one.sample_id: one for one in samples["pond_vqa", "pond_vqa_level1", model]().samples}
        for model in ("aurora-8b", "aurora-72b")
    )
    better = [
        name for name in first if second[name].scores["rougeL"] > first[name].scores["rougeL"]
    ]
    assert page.locator("#found").inner_text() == f"{len(better)} of 60 samples"
    assert set(page.locator(".sample h3").all_inner_texts()) == set(better[:50])
    assert "A pond, Aurora-VL 8B says." in page.locator(".sample").first.inner_text()

    again = reader.open(f"compare.html{fragment(page)}")
    again.locator(".sample").first.wait_for()
    assert again.locator("#found").inner_text() == f"{len(better)} of 60 samples"
    link = again.locator(".sample h3 a").first
    name = link.inner_text()
    link.click()
    again.locator("#one-title").filter(has_text=name).wait_for()
    assert again.locator("[name=model]").input_value() == "aurora-8b"


def test_a_signed_score_makes_no_model_top_and_a_sample_is_better_nearer_to_zero(
    browser: Any, tmp_path: Path
) -> None:
    answers = {"aurora-72b": (-1.0, 2.0, 3.0), "aurora-8b": (-6.0, -1.0, -3.0)}
    held = {
        ("stream_qa", "stream_qa_future", model): [
            sample("stream_qa_future", f"clip-{place}", "", {"signed_delay": late})
            for place, late in enumerate(delays)
        ]
        for model, delays in answers.items()
    }
    write_site(board(), tmp_path / "out", samples=held_samples(held))
    with Reader(browser, tmp_path / "out") as reader:
        page = reader.open(
            "compare.html#a=aurora-72b&b=aurora-8b&task=samples%2Fstream_qa%2Fstream_qa_future"
        )
        page.locator(".sample").first.wait_for()
        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        table = page.get_by_role("region", name="StreamQA: Parts of the score")
        tops = {row.locator("th").inner_text().split()[0]: row.locator("td.top").all_inner_texts()
                for row in table.locator("tbody tr").all()}  # fmt: skip
        assert tops["Delay"] == tops["Judged"] == []  # best at 0; incomplete
        assert len(tops["Content"]) == 1
        assert "0 is best" in table.inner_text()
        for chosen, names_ in (
            ("all", ["clip-0", "clip-1", "clip-2"]),
            ("first", ["clip-0"]),
            ("second", ["clip-1"]),
        ):
            page.locator("#samples [name=show]").select_option(chosen)
            page.wait_for_function(f"document.querySelectorAll('.sample').length === {len(names_)}")
            assert sorted(page.locator(".sample h3").all_inner_texts()) == names_


def test_a_benchmark_that_shows_nothing_shows_letters_and_scores(reader: Reader) -> None:
    page = reader.open(
        "compare.html#a=aurora-8b&b=uniform&task=samples%2Fseries_mcq%2Fseries_mcq_tel"
    )
    page.locator(".sample").first.wait_for()
    assert "signed agreement" in page.locator("#limits").inner_text()
    assert "Response" not in page.locator("#rows").inner_text()


def test_samples_are_filtered_and_read_one_by_one(reader: Reader) -> None:
    samples = {
        one.sample_id: one
        for one in sample_text()["pond_vqa", "pond_vqa_level1", "aurora-8b"]().samples
    }
    page = reader.open("samples.html?task=pond_vqa_level1&model=aurora-8b")
    found = page.locator(".list tbody th")
    found.first.wait_for()
    page.locator("[name=metric]").select_option("rougeL")
    assert page.locator("#found").inner_text() == "60 of 60 samples"
    assert found.count() == 50
    page.get_by_role("button", name="Next page").click()
    assert found.count() == 10
    wrong = sorted(name for name, one in samples.items() if (one.scores["rougeL"] or 0) < 0.5)
    page.locator("[name=outcome]").select_option("wrong")
    page.wait_for_function(
        f"document.getElementById('found').textContent.startsWith('{len(wrong)} of')"
    )
    assert sorted(found.all_inner_texts()) == wrong[:50]
    order = found.all_inner_texts()
    found.first.get_by_role("link").click()
    assert page.locator("#one-title").inner_text() == order[0]
    for key, expected in (
        ("n", order[1]),
        ("w", order[2]),
        ("p", order[1]),
        ("ArrowLeft", order[0]),
    ):
        page.keyboard.press(key)
        assert page.locator("#one-title").inner_text() == expected
    page.get_by_role("button", name="Show the other models").click()
    page.get_by_role("heading", name="Aurora-VL 72B").wait_for()
    assert "A pond, Aurora-VL 72B says." in page.locator("#answers").inner_text()
    again = reader.open(page.url.partition(reader.site + "/")[2])
    again.locator("#one-title").filter(has_text=order[0]).wait_for()
    again.keyboard.press("u")
    again.locator(".list").wait_for()
    assert again.locator("#found").inner_text() == f"{len(wrong)} of 60 samples"


def test_dark_mode_follows_the_system_until_the_reader_chooses(
    browser: Any, sites: dict[str, Path]
) -> None:
    with Reader(browser, sites["board"], dark=True) as reader:
        page = reader.open("index.html")
        paper = "getComputedStyle(document.body).backgroundColor"
        dark = page.evaluate(paper)
        page.get_by_role("button", name="Dark", pressed=True).click()
        light = page.evaluate(paper)
        assert (dark, light) == ("rgb(18, 22, 27)", "rgb(255, 255, 255)")
        assert reader.open("protocol.html").evaluate(paper) == light  # remembered


def test_breakdowns_are_shown_as_figures_or_as_a_table(reader: Reader) -> None:
    page = reader.open("benchmark-pond_vqa.html")
    figure, table = page.locator("#figure-levels"), page.locator("#levels")
    figure.scroll_into_view_if_needed()
    assert figure.locator("rect").first.bounding_box()["width"] > 20  # it draws bars
    assert not table.is_visible()
    view = page.get_by_role("group", name="Levels, original and transformed as")
    view.get_by_label("Table").check()
    assert (figure.is_visible(), table.is_visible()) == (False, True)
    assert page.locator("#headline").is_visible()  # its chart is beside it, so it has no switch


def test_differences_are_drawn_around_zero(reader: Reader) -> None:
    page = reader.open("compare.html#a=aurora-8b&b=aurora-72b")
    tests = page.get_by_role("region", name="Tests of the headline scores")
    tests.wait_for()
    for row in tests.locator("tbody tr").all()[:2]:
        path = row.locator(".iv path:not(.ch)").get_attribute("d")
        low, high = (float(end) for end in re.match(r"M([-\d.]+) 4H([-\d.]+)M", path).groups())
        assert low < high < 50  # 50 is zero, and the larger model is better
    assert tests.evaluate("one => one.scrollWidth <= one.clientWidth")
    page = reader.open("compare.html#a=aurora-72b&b=birch-flash")
    tests = page.get_by_role("region", name="Tests of the headline scores")
    tests.get_by_text("run `medtasks judge RESULTS`").wait_for()
    assert tests.evaluate(
        "one => one.scrollWidth <= one.clientWidth"
    )  # a long reason pushes no column off the page


def test_hostile_text_that_scripts_show_is_text(browser: Any, sites: dict[str, Path]) -> None:
    with Reader(browser, sites["hostile"]) as reader:  # what templates show: `test_site.py`
        page = reader.open("compare.html#a=aurora-72b&b=aurora-8b")
        page.get_by_role("region", name="Tests of the headline scores").wait_for()
        task = page.locator("select[name=task] option").nth(1).get_attribute("value")
        page.locator("select[name=task]").select_option(task)
        page.locator(".sample").first.wait_for()
        assert "<script>window.hacked=1</script>" in page.locator(".sample").first.inner_text()
        page.get_by_text("Swap", exact=True).click()
        page = reader.open(
            "samples.html?words=%3Cimg%20src%3Dx%20onerror%3Dhacked%3D1%3E&id=%3Cimg%20src%3Dx&status=%3Cb%3E"
        )
        page.locator("#one-title").filter(has_text="<img src=x").wait_for()
        page = reader.open("samples.html")
        page.locator(".list tbody a").first.click()
        page.get_by_role("button", name="Show the other models").click()
        page.locator("#answers article").nth(1).wait_for()
        assert "<script>window.hacked=1</script>" in page.locator("#one").inner_text()
        assert page.locator("main img").count() == 0
        page = reader.open(
            "compare.html#a=%3Cimg%20src%3Dx%20onerror%3Dhacked%3D1%3E&b=../../x&task=..%2F..%2Fx"
        )
        page.locator("#count").filter(has_text="Choose two models.").wait_for()
        assert page.evaluate("window.hacked") is None
        assert page.locator("main img").count() == 0


def edge_colours(page: Any) -> list[set[tuple[int, ...]]]:
    """The colours of the navigation's left and right end, above its links."""
    image = Image.open(BytesIO(page.locator(".mast nav").screenshot())).convert("RGB")
    above = 2
    left, right = range(8), range(image.width - 8, image.width)
    return [{image.getpixel((x, above)) for x in columns} for columns in (left, right)]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_navigation_of_a_phone_shows_where_it_scrolls(
    browser: Any, sites: dict[str, Path], dark: bool
) -> None:
    with Reader(browser, sites["board"], dark=dark) as reader:
        page = reader.open("index.html")
        left, right = edge_colours(page)
        assert left == right  # on a wide screen every link is there
        assert len(left) == 1
        page.set_viewport_size({"width": 390, "height": 900})
        navigation = page.locator(".mast nav")
        assert navigation.evaluate("nav => nav.scrollWidth > nav.clientWidth")
        shaded = {}
        for place in (0, 40, 10_000):
            navigation.evaluate(
                "(nav, place) => nav.scrollTo({ left: place, behavior: 'instant' })", place
            )
            shaded[place] = [colours != left for colours in edge_colours(page)]
        assert shaded == {0: [False, True], 40: [True, True], 10_000: [True, False]}


def test_a_list_of_samples_keeps_the_response_on_a_phone(reader: Reader) -> None:
    page = reader.open("samples.html?task=pond_vqa_level1")
    page.set_viewport_size({"width": 390, "height": 900})
    check_responses_on_screen(page)


def test_axe_finds_nothing_serious(reader: Reader, sites: dict[str, Path]) -> None:
    names_of_pages = page_names(sites["board"])
    assert set(names_of_pages) >= {"index.html", "protocol.html", *CHOICES}
    for name in names_of_pages:
        page = reader.open(name + CHOICES.get(name, ""))
        if name == "compare.html":
            page.locator(".sample").first.wait_for()
        if name == "samples.html":
            page.locator(".list").wait_for()
        check_accessibility(page)


def test_a_hundred_models_stay_usable(browser: Any, sites: dict[str, Path]) -> None:
    loaded = ("index.html", "assets/parts.js", "assets/site.css", "assets/site.js")
    assert sum((sites["large"] / name).stat().st_size for name in loaded) < 300_000
    with Reader(browser, sites["large"]) as reader:
        page = reader.open("index.html")
        assert page.locator("#models tbody tr:not(.with)").count() == 100
        assert {Path(url).name for url in reader.requests if url.endswith(".js")} == {
            "parts.js",
            "site.js",
        }
        page = reader.open("benchmark-lake_vqa.html")
        choose(page, family="Family 3")
        assert page.locator("#classes tbody tr:not([hidden]):not(.with)").count() == 11
        page.locator("#classes thead button").nth(20).click()
        assert page.locator("#classes th[aria-sort=descending]").count() == 1


def test_what_is_not_verified_says_so_beside_the_sample(browser: Any, tmp_path: Path) -> None:
    rows = [sample("stream_qa_future", "clip-1", "late", {"signed_delay": 1.0})]
    unverified = Verification("unverifiable", "the data are not here")
    held = {
        SampleKey("stream_qa", "stream_qa_future", model): partial(Answers, rows, unverified)
        for model in ("aurora-72b", "aurora-8b")
    }
    write_site(board(), tmp_path / "out", samples=held)
    with Reader(browser, tmp_path / "out") as reader:
        page = reader.open("samples.html?task=stream_qa_future")
        page.locator("#list tbody tr").first.wait_for()
        assert "not verified" in page.locator("#list tbody tr").first.inner_text()
        page = reader.open("samples.html?task=stream_qa_future&id=clip-1")
        page.locator("#answers article").first.wait_for()
        said = page.locator("#answers article").first.inner_text()
        assert "question and reference are as submitted" in said
