"""``medtasks view`` over real HTTP: what it refuses, what its pages say, and where its pictures
come from.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, quote, urlencode, urlsplit

import numpy as np
import pytest
from boards import HOSTILE
from invented_runs import MODELS, edit_json, make_run, write_run_of, write_runs
from medtasks.leaderboard.intake.remove_rows import remove_rows
from medtasks.leaderboard.publish import BoardOptions, publish
from medtasks.leaderboard.view import results_view
from medtasks.leaderboard.view.library import Library, read_library
from medtasks.leaderboard.view.response_pieces import response_pieces
from medtasks.leaderboard.view.results_view import View
from PIL import Image
from view_server import Answered, RunUnderWay, Server, serving

from medtasks.answers.base import LONGEST_SCORED
from medtasks.benchmarks.documents import all_pictures, task_documents
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.runs.sample_files import sample_lines
from medtasks.runs.samples import Sample
from medtasks.scoring.finished_run import score_unfinished
from medtasks.scoring.run_folder import RunFolder

pytestmark = pytest.mark.slow

GROUPS = ("kvasir_vqa_x1", "mi_cxr", "medstreambench_proactive")
OPEN, CHOICE, STREAM = "kvasir_vqa_x1_level3", "mi_cxr_tel_single", "medstreambench_proactive"
ORACLE, CAREFUL, GUESS = MODELS[0], MODELS[1], MODELS[3]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results")
    write_runs(root, (ORACLE, CAREFUL, GUESS), GROUPS)
    return root


@pytest.fixture(scope="module")
def server(results: Path) -> Iterator[Server]:
    with serving([results]) as started:
        yield started


def samples_of(results: Path, model: str, task: str) -> dict[str, Sample]:
    (path,) = results.glob(f"{model}/*_medtasks/samples/{task}.jsonl")
    return {sample.sample_id: sample for *_, sample in sample_lines(path)}


def key_of(server: Server, model: str) -> str:
    return next(run.key for run in server.view.wait().runs if model in run.label)


def page(server: Server, name: str, **given: str) -> str:
    answer = server.ask(f"{name}?{urlencode(given)}")
    assert answer.status == 200, answer.text
    return answer.text


def listed(server: Server, **given: str) -> list[str]:
    """The ids on a list page, in its order."""
    found = re.findall(
        r'<th scope="row"><a href="[^"]*">(.*?)</a>', page(server, "samples.html", **given)
    )
    return [unescape(one) for one in found]


def test_other_hosts_origins_and_methods_are_refused(server: Server) -> None:
    path, port = "index.html", server.host.rpartition(":")[2]
    assert server.host == f"127.0.0.1:{port}"
    assert server.ask(path).status == 200
    for host in (
        "evil.example",
        f"evil.example:{port}",
        f"127.0.0.1.evil.example:{port}",
        "127.0.0.1:1",
        "",
    ):
        assert server.ask(path, Host=host).status == 403, host
    assert server.ask(path, Host=f"localhost:{port}").status == 200
    for origin in (
        "http://evil.example",
        "null",
        f"https://127.0.0.1:{port}",
        f"http://127.0.0.1:{port}.evil.example",
    ):
        assert server.ask(path, Origin=origin).status == 403, origin
    assert server.ask(path, Origin=f"http://127.0.0.1:{port}").status == 200
    assert server.ask(path, Sec_Fetch_Site="cross-site", Sec_Fetch_Dest="image").status == 403
    assert (
        server.ask(path, Sec_Fetch_Site="cross-site", Sec_Fetch_Dest="document").status == 200
    )  # a followed link
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
        assert server.ask(path, method).status == 405, method
    head = server.ask(path, "HEAD")
    assert (head.status, head.body) == (200, b"")


def test_nothing_is_reachable_without_the_token(server: Server) -> None:
    for path in ("/", "/index.html", "/assets/site.css", f"/{server.token[:-1]}/", f"/{server.token}x/index.html",
                 "/x/index.html", f"//{server.token}/index.html", f"/INDEX/{server.token}/index.html"):  # fmt: skip
        answer = server.ask(path, whole=True)
        assert answer.status == 404, path
        assert server.token.encode() not in answer.body
    assert len(server.token) >= 32
    with serving([]) as other:
        assert other.token != server.token
        assert other.ask("live.html").status == 200


def test_characters_that_a_page_does_not_show_are_written_out(tmp_path: Path) -> None:
    folder = write_run_of(tmp_path, GUESS, [OPEN])
    invisible = "no polyp\u202e lamron\u2066\x00\x1b[2J"
    edit_json(
        folder / "samples" / f"{OPEN}.jsonl",
        lambda sample: sample.update(responses=[invisible]),
        line=0,
    )
    with serving([tmp_path]) as server:
        first = listed(server, task=OPEN)[0]
        text = page(server, "sample.html", task=OPEN, id=first)
        found = page(server, "samples.html", task=OPEN, words="polyp\u202e")
    assert r"no polyp\u{202e} lamron\u{2066}\u{0}\u{1b}[2J" in text
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f]", text)
    assert (
        'name="words" value="polyp\u202e"' in found
    )  # what a reader wrote into a field is sent back unchanged


def test_only_the_sites_files_are_served(server: Server) -> None:
    for path in (
        *("../../../../../../etc/passwd", "..%2f..%2f..%2f..%2fetc/passwd"),
        *(
            "assets/../../site.json/../../../etc/passwd",
            "assets/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        ),
        *(
            "assets/..%5c..%5cview.js",
            "//etc/passwd",
            "/etc/passwd",
            "file:///etc/passwd",
            "assets/",
            "assets",
        ),
        *("data/../index.html", "exports/%00", "samples/kvasir_vqa_x1_level3.jsonl"),
    ):
        answer = server.ask(path)
        assert answer.status in (400, 404), path
        assert b"root:" not in answer.body


def test_every_answer_forbids_scripts_of_others_and_storing(server: Server) -> None:
    expected = {
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
        "Referrer-Policy": "same-origin",
    }
    for path in (
        "index.html",
        "samples.html",
        "nothing",
        "assets/site.css",
        "live-part.html",
        "data/index.js",
    ):
        headers = server.ask(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert expected.items() <= headers.items()
        assert "aiohttp" not in headers["Server"]
        assert "Access-Control-Allow-Origin" not in headers


def test_the_command_prints_its_address_and_ends_at_an_interrupt(tmp_path: Path) -> None:
    write_run_of(tmp_path, GUESS, [CHOICE])
    (tmp_path / "files").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "files")}
    command = [sys.executable, "-m", "medtasks", "view", str(tmp_path), "--no-browser"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    address = process.stdout.readline().split()[0]
    pages = []
    while not pages or "<h1>reading" in pages[-1]:  # the address comes first
        with urllib.request.urlopen(f"{address}samples.html") as answer:
            pages.append(answer.read().decode())
    assert CHOICE in pages[-1]
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    assert [*(tmp_path / "files").iterdir()] == []
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = str(other.getsockname()[1])
        done = subprocess.run(
            [*command, "--port", taken], capture_output=True, text=True, check=False
        )
    assert done.returncode == 2
    assert "give another" in done.stderr
    assert "Traceback" not in done.stderr


def test_pages_say_how_far_reading_is_until_the_results_are_read(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = View([results])
    told = []

    def reading(paths: Sequence[Path], progress: Callable[[int, int], None]) -> Library:
        for done in (0, 1):
            progress(done, 3)
            told.append(view.answer("index.html", {}))
        return read_library(paths)

    monkeypatch.setattr(results_view, "read_library", reading)
    assert view.has_results
    view.read()
    for number, answer in enumerate(told, start=1):
        text = answer.text
        assert f"<h1>reading {number} of 3 …</h1>" in text
        assert '<meta http-equiv="refresh" content="1">' in text
    assert 'http-equiv="refresh"' not in view.answer("index.html", {}).text
    (tmp_path / "empty").mkdir()
    view = View([tmp_path / "empty"])
    assert not view.has_results
    view.read()
    assert view.first_page == "live.html"


def test_the_pages_are_those_of_the_static_site(
    server: Server, results: Path, tmp_path: Path
) -> None:
    options = BoardOptions(title="medtasks results", demonstration=True)
    publish([results], tmp_path / "site", options, figures=("svg",))
    static = {
        path.relative_to(tmp_path / "site").as_posix(): path
        for path in (tmp_path / "site").rglob("*.*")
    }
    links = '<p class="muted small">Download: .*?</p>'  # of figures, in all formats here
    exports = '<ul class="files">.*?</ul>'  # without sizes here
    own = re.compile(
        f'<nav aria-label="Pages">.*?</nav>|<footer>.*?</footer>|{links}|{exports}', re.DOTALL
    )
    for name, path in static.items():
        if not path.is_file() or name in (
            "site.json",
            "samples.html",
        ):  # a mark, and a page that has more here
            continue
        served = server.ask(quote(name))
        assert served.status == 200, name
        expected = path.read_bytes()
        if name.endswith(".html"):
            assert own.sub("", served.text) == own.sub("", expected.decode()), name
        else:
            assert served.body == expected, name


def wait_for(reached: Callable[[], bool]) -> None:
    for _ in range(600):
        if reached():
            return
        time.sleep(0.2)
    pytest.fail("it did not happen")


def test_filters_choose_the_samples_that_the_results_say(server: Server, results: Path) -> None:
    own, *others = (
        samples_of(results, name, CHOICE) for name in ("Guess-1B", "Oracle-72B", "Careful-7B")
    )
    run, first = key_of(server, "Guess-1B"), next(iter(own.values())).document
    words = first["question"][5:40].upper()

    def right(name: str) -> bool:
        return own[name].scores["accuracy"] == 1

    def also(name: str) -> set[bool]:
        return {samples[name].scores["accuracy"] == 1 for samples in others}

    cases: list[tuple[dict[str, str], Callable[[str], bool]]] = [
        ({}, lambda _: True),
        ({"outcome": "wrong"}, lambda name: not right(name)),
        ({"outcome": "right"}, right),
        ({"by.qtype": first["qtype"]}, lambda name: own[name].document["qtype"] == first["qtype"]),
        ({"status": "none"}, lambda _: False),
        (
            {"words": words},
            lambda name: words.casefold() in own[name].document["question"].casefold(),
        ),
        ({"words": "document"}, lambda _: False),  # a key of the file, but of no text
        ({"disagree": "any"}, lambda name: len({right(name), *also(name)}) == 2),
        ({"disagree": "alone-wrong"}, lambda name: not right(name) and also(name) == {True}),
        ({"disagree": "alone-right"}, lambda name: right(name) and also(name) == {False}),
        (
            {"disagree": key_of(server, "Careful-7B")},
            lambda name: own[name].filtered != others[1][name].filtered,
        ),
    ]
    for given, holds in cases:
        expected = [name for name in sorted(own) if holds(name)]
        assert listed(server, task=CHOICE, run=run, **given) == expected, given
        assert expected or given in (
            {"status": "none"},
            {"words": "document"},
            {"disagree": "alone-right"},
        ), given
    high = [name for name in sorted(own) if right(name)]
    assert listed(server, task=CHOICE, run=run, sort="high")[: len(high)] == high
    decided: dict[str, list[str]] = {}
    for name, sample in sorted(samples_of(results, "Guess-1B", OPEN).items()):
        ((rubric, (response,)),) = sample.verdicts.items()
        (verdict,) = response.judges.values()
        for aspect, score in (verdict.scores or {}).items():
            decided.setdefault(f"{rubric}, {aspect}: {score}", []).append(name)
    verdict, names = max(decided.items())
    assert listed(server, task=OPEN, run=run, verdict=verdict) == names


def test_long_lists_have_pages(tmp_path: Path) -> None:
    folder = write_run_of(tmp_path, GUESS, [CHOICE])
    path = folder / "samples" / f"{CHOICE}.jsonl"
    line = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    names = [f"copy-{number:04}" for number in range(120)]
    path.write_text(
        "".join(json.dumps({**line, "sample_id": name}) + "\n" for name in names), encoding="utf-8"
    )
    facts = {"asked": 120, "answered": 120, "status": {"ok": 120}}
    edit_json(folder / "manifest.json", lambda manifest: manifest["tasks"][CHOICE].update(facts))
    with serving([tmp_path]) as server:
        assert listed(server, task=CHOICE) == names[:50]
        assert listed(server, task=CHOICE, page="3") == names[100:]
        for odd in ("0", "99", "-1", "x", "9" * 30):
            assert listed(server, task=CHOICE, page=odd)
        assert "page 2 of 3" in page(server, "samples.html", task=CHOICE, page="2")


def test_a_group_lists_the_samples_of_its_tasks(server: Server, results: Path) -> None:
    tasks = [
        task
        for task in leaf_tasks("mi_cxr")
        if list(results.glob(f"Guess-1B/*_medtasks/samples/{task}.jsonl"))
    ]
    run = key_of(server, "Guess-1B")
    every = {(task, name) for task in tasks for name in samples_of(results, "Guess-1B", task)}
    text = page(server, "samples.html", task="mi_cxr", run=run)
    assert f"of {len(every)} samples" in text
    assert f"mi_cxr, all {len(tasks)} tasks" in text
    assert "all 1 tasks" not in text
    (last,) = (
        unescape(one) for one in re.findall(r'<th scope="row"><a href="([^"]*)">', text)[-1:]
    )
    shown = server.ask(last).text
    assert parse_qs(urlsplit(last).query)["of"][0] in tasks
    assert '<article class="other"' in shown
    assert f"of {len(every)}</span>" in shown
    assert (
        server.ask(f"sample.html?{urlencode({'task': 'mi_cxr', 'of': OPEN, 'id': 'x'})}").status
        == 404
    )


def test_the_filtered_list_can_be_saved(server: Server, results: Path) -> None:
    own = samples_of(results, "Guess-1B", CHOICE)
    wrong = sorted(name for name, sample in own.items() if sample.scores["accuracy"] == 0)
    query = urlencode({"task": CHOICE, "run": key_of(server, "Guess-1B"), "outcome": "wrong"})
    rows = list(csv.DictReader(io.StringIO(server.ask(f"samples.csv?{query}").text)))
    assert [row["sample"] for row in rows] == wrong
    assert rows[0] | {"result": "wrong", "accuracy": "0.0", "gold": own[wrong[0]].target} == rows[0]
    lines = server.ask(f"samples.jsonl?{query}").text.splitlines()
    assert [Sample.model_validate_json(line) for line in lines] == [own[name] for name in wrong]
    shown = unescape(page(server, "sample.html", **dict(parse_qsl(query)), id=wrong[1]))
    assert f"2 of {len(wrong)}</span>" in shown
    (drawn,) = re.findall(r'href="sample\.html\?[^"]*id=([^"&]*)" data-key="r"', shown)
    assert drawn in wrong


def test_a_bookmark_with_its_note_is_kept_beside_the_run(tmp_path: Path) -> None:
    folder = write_run_of(tmp_path, GUESS, [CHOICE])
    before, kept = RunFolder(folder).content, folder.parent / "bookmarks.jsonl"
    with serving([tmp_path]) as server:
        run, (first, second, *_) = key_of(server, "Guess-1B"), listed(server, task=CHOICE)

        def mark(form: dict[str, str], name: str, **headers: str) -> Answered:
            address = f"bookmark?{urlencode({'task': CHOICE, 'run': run, 'id': name})}"
            kind = "application/x-www-form-urlencoded"
            return server.ask(
                address, "POST", body=urlencode(form).encode(), Content_Type=kind, **headers
            )

        own = {"Origin": f"http://{server.host}"}
        other = {"Origin": "http://evil.example"}
        for headers in ({}, {"Origin": "null"}, other, {**own, "Sec_Fetch_Site": "cross-site"}):
            assert mark({"note": "forged"}, first, **headers).status == 403, headers
        assert mark({"note": "x"}, "no-such-sample", **own).status == 404
        assert mark({"note": "x" * 70_000}, first, **own).status == 413
        assert not kept.exists()
        for name, note in ((second, "old"), (second, "sides <mixed up>"), (first, "")):
            assert mark({"note": note}, name, **own).status == 303
        assert listed(server, task=CHOICE, marked="1") == sorted([first, second])
        assert "sides &lt;mixed up&gt;" in page(server, "samples.html", task=CHOICE)
        assert 'value="sides &lt;mixed up&gt;"' in page(
            server, "sample.html", task=CHOICE, id=second
        )
        saved = server.ask(f"samples.csv?{urlencode({'task': CHOICE, 'marked': '1'})}").text
        assert {row["note"] for row in csv.DictReader(io.StringIO(saved))} == {
            "",
            "sides <mixed up>",
        }
        assert mark({"remove": "1"}, first, **own).headers["Location"].startswith("sample.html?")
    assert RunFolder(folder).content == before  # the run stays as it would be submitted
    with serving([tmp_path]) as server:
        assert listed(server, task=CHOICE, marked="1") == [second]
        kept.write_text('{"run": "r"}\n')
        answer = server.ask(f"samples.html?{urlencode({'task': CHOICE})}")
        assert answer.status == 500
        assert "bookmarks.jsonl, line 1: field `task` is missing" in answer.text


def test_a_sample_shows_prompt_response_options_and_the_other_runs(
    server: Server, results: Path
) -> None:
    own, oracle = (samples_of(results, name, CHOICE) for name in ("Guess-1B", "Oracle-72B"))
    name = next(one for one in sorted(own) if own[one].scores["accuracy"] == 0)
    text = unescape(
        page(server, "sample.html", task=CHOICE, run=key_of(server, "Guess-1B"), id=name)
    )
    assert own[name].prompt in text
    assert f"<b>{own[name].target}</b>" in re.search(r'<li class="gold">.*?</li>', text).group()  # type: ignore[union-attr]
    assert (
        f"<b>{own[name].filtered}</b>" in re.search(r'<li class=" chosen">.*?</li>', text).group()
    )  # type: ignore[union-attr]
    assert text.count(f"<mark>{own[name].filtered}</mark>") == 1 + (
        own[name].filtered == oracle[name].filtered
    )
    assert '<article class="other"' in text
    for label in ("Careful-7B", "Oracle-72B"):
        assert label in text.partition('id="others"')[2]
    assert "Not to be shared" in text  # its licence lets nothing be published
    assert "PhysioNet" in text
    shown = unescape(
        page(server, "sample.html", task=OPEN, id=next(iter(samples_of(results, "Guess-1B", OPEN))))
    )
    assert "Not to be shared" not in shown


def test_a_response_that_is_too_long_to_be_scored_whole_says_so(tmp_path: Path) -> None:
    folder = write_run_of(tmp_path, GUESS, [OPEN])
    said = "a polyp " * (LONGEST_SCORED // 8 + 1)
    edit_json(
        folder / "samples" / f"{OPEN}.jsonl", lambda sample: sample.update(responses=[said]), line=0
    )
    with serving([tmp_path]) as server:
        shown = [
            page(server, "sample.html", task=OPEN, id=name)
            for name in listed(server, task=OPEN)[:2]
        ]
    assert ["too long to be scored in full" in text for text in shown] == [True, False]


def test_a_stripped_run_is_shown_beside_whole_ones(results: Path, tmp_path: Path) -> None:
    (folder,) = (results / ORACLE.folder).glob("*_medtasks")
    remove_rows(folder, tmp_path / "stripped_medtasks")
    name = next(iter(samples_of(results, ORACLE.folder, CHOICE)))
    with serving([tmp_path, results / GUESS.folder]) as server:
        for model in (ORACLE.folder, GUESS.folder):
            text = page(server, "sample.html", task=CHOICE, run=key_of(server, model), id=name)
            assert '<article class="other"' in text


def test_a_stream_has_its_rounds_on_a_time_axis(server: Server, results: Path) -> None:
    own = samples_of(results, "Oracle-72B", STREAM)
    name = next(one for one in sorted(own) if own[one].document["answerable"])
    document = own[name].document
    rounds = sorted(one for one in own if own[one].document["item_id"] == document["item_id"])
    text = unescape(
        page(server, "sample.html", task=STREAM, run=key_of(server, "Oracle-72B"), id=name)
    )
    assert len(re.findall(r'<g class="mark', text)) == 3 * len(rounds)
    assert f"{document['window_start']:g} to {document['window_end']:g}" in text
    assert len(re.findall(r'<figure><a href="media\?', text)) == len(document["times"])
    assert "t* =" in text
    for other in rounds:
        assert (f"id={quote(other)}" in text) == (other != name) or other == name


def test_a_sample_that_is_not_there_is_one_sentence(server: Server) -> None:
    for query in (f"task={CHOICE}&id=nobody", "task=x&id=y", f"task={CHOICE}&run=run-0&id=y"):
        answer = server.ask(f"sample.html?{query}")
        assert answer.status == 404
        assert "choose" in answer.text


def picture(server: Server, **given: str) -> Image.Image:
    answer = server.ask(f"media?{urlencode(given)}")
    assert answer.status == 200, answer.text
    return Image.open(io.BytesIO(answer.body))


@pytest.mark.parametrize("task", [OPEN, CHOICE, STREAM])
def test_pictures_are_those_that_models_get(server: Server, task: str) -> None:
    document = task_documents(task)[-1]
    expected = all_pictures(document)
    shown = unescape(page(server, "sample.html", task=task, id=document["sample_id"]))
    assert len(re.findall(r"<figure><a href=\"media", shown)) == len(expected)
    for number, wanted in enumerate(expected):
        found = picture(server, task=task, id=document["sample_id"], n=str(number))
        assert found.format == "PNG"
        assert np.array_equal(np.asarray(found), np.asarray(wanted))
    text = page(server, "samples.html", task=task)
    thumbs = [
        unescape(one) for one in re.findall(r'<td class="thumb"><a [^>]*><img src="([^"]*)"', text)
    ]
    assert len(thumbs) == len(listed(server, task=task))
    answer = server.ask(thumbs[-1])
    assert (answer.status, answer.headers["Content-Type"]) == (200, "image/jpeg")
    assert max(Image.open(io.BytesIO(answer.body)).size) <= 320
    for odd in (str(len(expected)), "-1", "x", "9" * 20):
        query = urlencode({"task": task, "id": document["sample_id"], "n": odd})
        assert server.ask(f"media?{query}").status in (404, 500)


def test_results_cannot_choose_which_file_is_read(tmp_path: Path) -> None:
    folder = write_run_of(tmp_path, GUESS, [OPEN])
    Image.new("RGB", (3, 3)).save(tmp_path / "secret.png")
    edit_json(
        folder / "samples" / f"{OPEN}.jsonl",
        lambda sample: sample.update(media=[str(tmp_path / "secret.png")]),
        line=0,
    )
    with serving([tmp_path]) as server:
        name = listed(server, task=OPEN)[0]
        assert "secret.png" not in page(server, "sample.html", task=OPEN, id=name)
        found = picture(
            server, task=OPEN, id=name
        )  # the prepared one, for whoever asks nevertheless
        assert found.size != (3, 3)


def test_without_the_runs_data_the_page_names_the_command(tmp_path: Path) -> None:
    folder = write_run_of(tmp_path, GUESS, [CHOICE], mini=False)
    edit_json(
        folder / "manifest.json", lambda told: told["data"]["mi_cxr"].update(fingerprint="0" * 64)
    )
    with serving([tmp_path]) as server:
        name = listed(server, task=CHOICE)[0]
        text = unescape(page(server, "sample.html", task=CHOICE, id=name))
        assert "medtasks prepare mi_cxr" in text
        assert "<img" not in text
        assert server.ask(f"media?{urlencode({'task': CHOICE, 'id': name})}").status == 500


def test_a_run_under_way_is_counted_as_it_will_be_scored(tmp_path: Path) -> None:
    run, silent = (
        RunUnderWay(tmp_path, CAREFUL, [CHOICE, OPEN]),
        RunUnderWay(tmp_path / "silent", MODELS[4], [CHOICE]),
    )
    with serving([tmp_path]) as server:
        assert server.ask("", whole=False).headers["Location"].endswith("/live.html")
        assert "Refused" not in page(server, "index.html")  # there is nothing to rank yet
        first = unescape(page(server, "live-part.html"))
        assert CHOICE in first
        count = len(run.documents[CHOICE])
        run.answer(CHOICE, range(count - 2))
        run.answer(CHOICE, [count - 2], failed="the service was <b>down</b>")
        run.answer(OPEN, [0], text=HOSTILE)
        silent.answer(CHOICE, range(count))

        def told() -> str:
            return page(server, "live-part.html")

        wait_for(
            lambda: "down" in told() and f"{count} <small>100.0 %</small>" in told()
        )  # one abstains throughout
        text = told()
        assert f'<progress max="{count}" value="{count - 1}"' in text
        assert f"{count - 2} <small>of {count}</small>" in text
        assert f"{100 / (count - 1):.1f} %" in text  # failed
        scored = score_unfinished(run.folder, created="2026-11-22T00:00:00+00:00")
        done = make_run(CAREFUL, [CHOICE]).samples[CHOICE]
        answered = [one for one in scored.samples[CHOICE] if one.status != "failed"]
        assert len(answered) == count - 2 < len(done)
        accuracy = sum(one.scores["accuracy"] or 0 for one in answered) / len(answered)
        assert f"accuracy <strong>{100 * accuracy:.1f}</strong> %" in text
        assert "&lt;b&gt;down" in text
        assert "<img src=x" not in text

        run.answer(CHOICE, [count - 2, count - 1])
        expected = make_run(CAREFUL, [CHOICE]).tasks[CHOICE].metrics["accuracy"]
        assert expected.value is not None
        assert expected.interval is not None
        low, high = (f"{100 * end:.1f}" for end in expected.interval)
        wait_for(
            lambda: (
                f"accuracy <strong>{100 * expected.value:.1f}</strong> % <small>{low}–{high}</small>"
                in told()
            )
        )

        write_run_of(tmp_path, CAREFUL, [CHOICE])
        run.finish()
        silent.finish()
        wait_for(lambda: "No run is in progress" in told())
        wait_for(lambda: server.ask("samples.html").status == 200)
        assert set(listed(server, task=CHOICE)) == {one.sample_id for one in done}


def test_the_extracted_part_is_marked() -> None:
    spec = load_spec(CHOICE)
    document = {"benchmark": "mi_cxr"}
    for response, marked in [
        ("Option B is tempting, but the answer is C.", ["C"]),
        ("A small effusion. Answer: (a)", ["a"]),
        ("Answer: B\nSo my final answer is B", ["B", "B"]),
    ]:
        filtered = marked[0].upper()
        found = response_pieces(spec, response, filtered, document)
        assert "".join(text for text, _ in found) == response
        assert [text for text, extracted in found if extracted] in (marked, marked[-1:])
    found = response_pieces(
        load_spec(OPEN),
        "One polyp? Yes:\n one  polyp.",
        "one polyp",
        {"benchmark": "kvasir_vqa_x1"},
    )
    assert [text for text, extracted in found if extracted] == ["one  polyp"]  # the last one
    assert response_pieces(spec, "nothing to see", "[none]", document) == [
        ("nothing to see", False)
    ]


def test_a_stopped_run_says_that_it_stopped_and_how_to_continue(tmp_path: Path) -> None:
    run, stopped = (
        RunUnderWay(tmp_path / "a", CAREFUL, [CHOICE]),
        RunUnderWay(tmp_path / "b", GUESS, [CHOICE]),
    )
    for one in (run, stopped):
        one.answer(CHOICE, range(3))
    stopped.stop()
    before = time.time() - 3600
    for path in run.folder.iterdir():  # a slow model: its process still holds the directory
        os.utime(path, (before, before))
    with serving([tmp_path]) as server:
        sections = unescape(page(server, "live-part.html")).split("<section")[1:]
    by_model = {
        model.name: section
        for model in (CAREFUL, GUESS)
        for section in sections
        if model.name in section
    }
    assert "This run has stopped" not in by_model[CAREFUL.name]
    assert "This run has stopped" in by_model[GUESS.name]
    assert "Run the same command again to continue" in by_model[GUESS.name]
