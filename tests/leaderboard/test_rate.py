"""``medtasks rate`` over HTTP: what pages show and hide, what a form writes, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from invented_runs import MODELS, answered, edit_json, write_run_of
from medtasks.leaderboard.rate.asked import asked_answer
from rate_server import RATED_MODELS, RUBRIC, TASKS, RateServer, options, rating, write_judged_runs

from medtasks.catalog.rubric import Aspect
from medtasks.catalog.rubric_files import load_rubric
from medtasks.cli.rate import rate
from medtasks.core.errors import DataError, MedtasksError, UsageError
from medtasks.core.files import short_hash
from medtasks.core.locks import LockedError
from medtasks.judge.rating_file import read_rating_file
from medtasks.judge.rating_records import GOLD
from medtasks.judge.stub import MODEL
from medtasks.runs.find import run_folders
from medtasks.runs.samples import Sample
from medtasks.scoring.run_folder import read_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("judged")
    write_judged_runs(root)
    return root


@pytest.fixture
def results(judged: Path, tmp_path: Path) -> Path:
    """The judged runs, without anybody's ratings."""
    return Path(shutil.copytree(judged, tmp_path / "results"))


@pytest.fixture
def server(results: Path) -> Iterator[RateServer]:
    with rating([results], options(results, sample=16, overlap=4)) as started:
        yield started


def refuses(
    results: Path,
    error: type[MedtasksError],
    message: str,
    questions: Path | None = None,
    **changed: Any,
) -> None:
    with (
        pytest.raises(error, match=message),
        rating([results], options(results, **changed), questions),
    ):
        pass


def lines(results: Path, rater: str = "ann") -> list[str]:
    path = results / "ratings" / RUBRIC / f"{rater}.jsonl"
    return path.read_text(encoding="utf-8").splitlines()[1:]


def test_no_answer_of_the_server_names_a_model_a_run_or_a_verdict(
    results: Path, server: RateServer
) -> None:
    """Every page and file that pages link to, with headers, before and after ratings and errors."""
    for position in range(1, 7):
        assert server.rate(position, comment="seen").status == 303
    addresses = ["", "done.html", "answer.html", "answer.html?answer=99", "nothing.html"]
    addresses += [f"answer.html?answer={number}" for number in range(1, 17)]
    bodies: list[bytes] = []
    seen: set[str] = set()
    while addresses:
        address = addresses.pop()
        if address in seen:
            continue
        seen.add(address)
        answered = server.ask(address)
        bodies.append(repr(sorted(answered.headers.items())).encode() + answered.body)
        if answered.headers["Content-Type"].startswith("text/html"):
            found = re.findall(r'(?:href|src|action|data-next)="([^"#]+)"', answered.text)
            addresses += [unescape(link) for link in found if not link.startswith("rating")]
    assert sum(address.startswith("media?") for address in seen) >= 16
    assert "assets/rate.js" in seen
    secrets = {"invented", MODEL, "medtasks_vlm", "_medtasks", "stub", "stratum", "probability"}
    for model in RATED_MODELS:
        secrets |= {model.name, model.folder}
    for folder in run_folders(results):
        manifest, samples = read_run(folder)
        secrets |= {folder.name, folder.parent.name, manifest.identity}
        for sample in (sample for of_task in samples.values() for sample in of_task):
            for judged_response in sample.verdicts[RUBRIC]:
                secrets |= set(judged_response.judges[MODEL].reasons.values())
    for secret in secrets - {""}:
        assert not any(secret.encode() in body for body in bodies), secret


def test_a_page_shows_the_question_the_answer_and_the_reference(
    results: Path, server: RateServer
) -> None:
    answers = {}
    for folder in run_folders(results):
        manifest, samples = read_run(folder)
        for task in TASKS:
            for sample in samples[task]:
                answers[manifest.identity, task, sample.sample_id] = sample
    for position, answer in enumerate(server.session.plan.answers, start=1):
        sample = answers[answer.key]
        text = unescape(server.ask(f"answer.html?answer={position}").text)
        assert sample.document["question"] in text
        assert f'<pre class="given" tabindex="0">{sample.filtered}</pre>' in text
        assert sample.target in text
        assert answer.response_hash == short_hash(sample.filtered)
        for aspect in sample.document["question_class"]:
            assert aspect.replace("_", " ").capitalize() in text
    assert {answer.run for answer in server.session.plan.answers} == {
        key[0] for key in answers
    }  # of both models


def test_a_rating_is_written_at_once_and_corrected_by_another(
    results: Path, server: RateServer
) -> None:
    assert server.ask("").headers["Location"].endswith("answer.html?answer=1")
    first = server.rate(1, comment=" unsure ", seconds="4.26")
    assert first.headers["Location"].endswith("answer.html?answer=2")
    (line,) = map(json.loads, lines(results))
    answer = server.session.plan.answers[0]
    assert (line["run"], line["task"], line["sample_id"]) == answer.key
    assert set(line["scores"].values()) == {1}
    assert line["scores"].keys() == {aspect.name for aspect in server.session.asked(1).aspects}
    assert (line["comment"], line["seconds"], line["cannot_tell"]) == ("unsure", 4.3, False)
    stratum = server.session.plan.strata[line["stratum"]]
    assert line["probability"] == pytest.approx(stratum.drawn / stratum.population)

    server.rate(1, comment="unsure", seconds="9")  # the same form, sent twice
    assert len(lines(results)) == 1
    server.rate(1, do="cannot_tell", seconds="")
    server.rate(16)
    file = read_rating_file(results / "ratings" / RUBRIC / "ann.jsonl")
    assert len(lines(results)) == 3
    corrected, last = file.ratings.values()
    assert (corrected.cannot_tell, corrected.has_scores, corrected.seconds) == (True, False, None)
    assert last.key == server.session.plan.answers[15].key
    assert 'value="1" checked' in server.ask("answer.html?answer=16").text
    assert "checked" not in server.ask("answer.html?answer=1").text
    assert "14 without a rating" in server.ask("done.html").text
    assert server.ask("").headers["Location"].endswith("answer.html?answer=2")


@pytest.mark.parametrize(
    ("position", "form", "message"),
    [
        (1, {"aspect_0": ""}, "has no score"),
        (1, {"aspect_0": "2"}, "has no score"),
        (1, {"do": "cannot_tell", "aspect_0": "x"}, "has no score"),
        (17, {"aspect_0": "1"}, "There is no answer 17"),
        (0, {"aspect_0": "1"}, "There is no answer 0"),
        (1, {"comment": "x" * 4001}, "the comment has 4,001 characters"),
    ],
)
def test_a_wrong_form_writes_nothing(
    results: Path, server: RateServer, position: int, form: dict[str, str], message: str
) -> None:
    if position == 1:
        aspects = range(len(server.session.asked(1).aspects))
        form = {**{f"aspect-{number}": "1" for number in aspects}, **form}
    answered = server.rate(position, **form)
    assert answered.status == 400
    assert message in answered.text
    assert lines(results) == []


def test_requests_of_other_sites_are_refused(results: Path, server: RateServer) -> None:
    """The same ways in which `view` refuses a bookmark."""
    own = f"http://{server.host}"
    for headers in (
        {"Host": "evil.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": own, "Sec_Fetch_Site": "cross-site"},
        {"Origin": own, "Sec_Fetch_Site": "same-site", "Sec_Fetch_Dest": "document"},
        {"Origin": own, "Host": "evil.example"},
    ):
        assert server.ask("rating?answer=1", {"aspect-0": "1"}, **headers).status == 403, headers
    for headers in ({"Host": "evil.example"}, {"Sec_Fetch_Site": "cross-site"}):
        assert server.ask("answer.html?answer=1", **headers).status == 403, headers
    for address in ("bookmark", "done.html", "media?answer=1", "../rating?answer=1"):
        assert server.ask(address, {"note": "x"}).status in (403, 404, 405), address
    assert server.ask("answer.html?answer=1", Sec_Fetch_Site="same-origin").status == 200
    policy = server.ask("done.html").headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert not lines(results)


def test_an_error_that_may_name_a_run_is_only_in_the_terminal(
    results: Path, server: RateServer
) -> None:
    path = results / "ratings" / RUBRIC / "ann.jsonl"
    path.rename(path.with_suffix(".moved"))
    answered = server.rate(1)
    assert answered.status == 500
    assert "the terminal" in answered.text
    assert str(results) not in answered.text
    assert server.reported[0].startswith(f"{path}: cannot be written")


def test_a_rater_continues_where_they_stopped(results: Path) -> None:
    asked = options(results, sample=16, overlap=4)
    with rating([results], asked) as server:
        order = server.session.plan.answers
        for position in (1, 2, 4):
            server.rate(position)
        with (
            pytest.raises(LockedError, match=r"ann.jsonl: is being rated by process"),
            rating([results], asked),
        ):
            pass
    with rating([results], options(results)) as server:  # options need not be repeated
        assert server.session.plan.answers == order
        assert server.session.progress().open[:3] == (3, 5, 6)
        assert server.ask("").headers["Location"].endswith("answer.html?answer=3")
    with rating([results], options(results, sample=20)) as server:
        assert server.session.plan.answers[:16] == order
        assert server.session.progress().total == 20
        server.rate(20)
    assert [json.loads(line).get("samples") for line in lines(results)] == [
        *[None] * 3, [16, 20], None,
    ]  # fmt: skip
    for changed, message in [
        ({"sample": 12}, "--sample 12: .* was begun with --sample 20; give --sample 20 or more"),
        (
            {"seed": 1},
            "--seed 1: .*ann.jsonl was begun with --seed 0; give --seed 0, or give another",
        ),
        ({"overlap": 5}, "--overlap 5: .* was begun with --overlap 4"),
        ({"hide_reference": True}, "--hide-reference: .* was begun with --show-reference"),
        (
            {"rater": "bo", "seed": 2},
            "--seed 2: .*ann.jsonl was begun with --seed 0; give that, or",
        ),
        ({"rater": "bo", "overlap": 9}, "--overlap 9: .*ann.jsonl was begun with --overlap 4"),
        ({"rater": "b/o"}, "--rater 'b/o': names a file"),
        ({"rater": "bo", "sample": 1}, "--sample 1: there are .* expected at least"),
    ]:
        refuses(results, UsageError, message, **{"overlap": 4, **changed})
    ratings = results / "ratings" / RUBRIC
    shutil.copy(ratings / "ann.jsonl", ratings / "cy.jsonl")
    refuses(results, UsageError, "--rater cy: .* was begun with --rater ann", rater="cy")


def test_changed_results_are_refused_and_a_new_verdict_is_not(results: Path) -> None:
    """The verdict may be another when a rater continues; a further rater could not be joined."""
    with rating([results], options(results, sample=16)) as server:
        answer = server.session.plan.answers[0]
        server.rate(1)
    for folder in run_folders(results):
        edit_json(folder / "manifest.json", lambda manifest: manifest.update(judge={}))
        for task in TASKS:
            path = folder / "samples" / f"{task}.jsonl"
            unjudged = []
            for line in path.read_text(encoding="utf-8").splitlines():
                unjudged.append(json.dumps({**json.loads(line), "verdicts": {}, "judged": {}}))
            path.write_text("\n".join(unjudged) + "\n", encoding="utf-8")
    with rating([results], options(results)) as server:
        assert server.session.progress().rated == 1
    for changed in ({"sample": 30}, {"rater": "bo", "sample": 16}):
        refuses(results, UsageError, "changed", **changed)
    (own,) = (
        folder for folder in run_folders(results) if read_run(folder)[0].identity == answer.run
    )
    number = next(
        place
        for place, sample in enumerate(read_run(own)[1][answer.task])
        if sample.sample_id == answer.sample_id
    )
    edit_json(
        own / "samples" / f"{answer.task}.jsonl",
        lambda sample: sample.update(responses=["Another text."]),
        line=number,
    )
    refuses(results, DataError, r"the answer to sample .* has changed since it was drawn")
    shutil.rmtree(own)
    refuses(results, UsageError, "is not in the given results; give all results")


def test_answers_that_cannot_be_rated_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run_of(tmp_path, MODELS[1], TASKS[:1])
    path = folder / "samples" / f"{TASKS[0]}.jsonl"
    edit_json(path, lambda sample: sample.update(responses=["  "]), line=0)
    edit_json(path, lambda sample: sample.update(failed=["timed out"], responses=[""]), line=1)
    total = len(path.read_text(encoding="utf-8").splitlines())

    async def ended(*_: object) -> None:
        """In place of a server that a test would have to interrupt."""

    monkeypatch.setattr("medtasks.leaderboard.rate.server.serve", ended)
    monkeypatch.setattr("medtasks.cli.rate.end_process", lambda _: None)
    rate([tmp_path], rater="ann", rubric=RUBRIC, no_browser=True)
    printed = capsys.readouterr().out
    assert f"{total - 2} of {total - 2} drawn, from 1 stratum" in printed
    assert "1 left out: the request failed" in printed
    assert "1 left out: the response is empty" in printed
    plan = read_rating_file(tmp_path / "ratings" / RUBRIC / "ann.jsonl").plan
    assert sum(plan.left_out.values()) == 2
    assert {stratum.verdict for stratum in plan.strata} == {"unjudged"}
    assert run_folders(tmp_path) == [folder]  # the ratings are no run
    with pytest.raises(UsageError, match=r"either --rubric.* or --questions"):
        rate([tmp_path], rater="ann")
    with pytest.raises(UsageError, match="none of the answers in these results can be rated"):
        rate([tmp_path], rater="ann", rubric="med_cmr_open")


def test_gold_answers_are_checked(results: Path, tmp_path: Path) -> None:
    folder = next(iter(run_folders(results)))
    samples = read_run(folder)[1][TASKS[0]][:3]
    path = tmp_path / "audit.csv"
    rows = [f"{TASKS[0]},{sample.sample_id},models disagree,0.9" for sample in samples]
    header = "task,sample_id,reasons,posterior"
    path.write_text("\n".join([header, *rows, f"{TASKS[0]},gone,x,1"]) + "\n")
    asked = options(results, rubric=GOLD)
    with rating([results], asked, path) as server:
        plan = server.session.plan
        assert {answer.sample_id for answer in plan.answers} == {
            sample.sample_id for sample in samples
        }
        assert plan.left_out == {"the question is not in these results": 1}
        text = unescape(server.ask("answer.html?answer=1").text)
        assert "models disagree" in text
        assert "What models answered" in text
        assert not any(model.name in text for model in RATED_MODELS)
        assert server.rate(1, **{"aspect-0": "ambiguous", "comment": "two lesions"}).status == 303
        assert server.rate(2, do="cannot_tell").status == 303
        assert server.rate(3, **{"aspect-0": "1"}).status == 400
        assert server.rate(3, **{"aspect-0": "wrong"}).status == 303
        assert "All 3 rated" in server.ask("done.html").text
    file = read_rating_file(results / "ratings" / GOLD / "ann.jsonl")
    verdicts = [rating.scores[GOLD] for rating in file.ratings.values()]
    assert verdicts == ["ambiguous", None, "wrong"]
    assert {rating.run for rating in file.ratings.values()} == {""}
    for content, message in [
        ("task,sample_id\nt,s\n", "audit.csv, line 1: the header has 'task', 'sample_id'"),
        (f"{header}\n{rows[0]}\n{rows[0]}\n", "audit.csv, line 3: sample .* is listed twice"),
        (f"{header}\nt,s,x,1\n", "none of its 1 questions is in the given results"),
    ]:
        path.write_text(content)
        with (
            pytest.raises(DataError, match=message),
            rating([results], options(results, "bo", rubric=GOLD), path),
        ):
            pass


def test_questions_that_are_listed_later_are_added(results: Path, tmp_path: Path) -> None:
    folder = next(iter(run_folders(results)))
    first, second = (read_run(folder)[1][task][:2] for task in TASKS)
    path = tmp_path / "audit.csv"
    asked = options(results, rubric=GOLD)

    def list_questions(samples: list[Sample]) -> None:
        rows = [f"{sample.task},{sample.sample_id},doubtful" for sample in samples]
        path.write_text("\n".join(["task,sample_id,reasons", *rows]) + "\n")

    list_questions(second)
    with rating([results], asked, path) as server:
        order = server.session.plan.answers
        server.rate(1, **{"aspect-0": "wrong"})
    list_questions([second[0], *first])
    with rating([results], asked, path) as server:
        assert server.session.plan.answers[:2] == order
        assert {answer.sample_id for answer in server.session.plan.answers[2:]} == {
            sample.sample_id for sample in first
        }
        assert server.session.progress().open == (2, 3, 4)
        texts = [server.ask(f"answer.html?answer={number}").text for number in (1, 2)]
        assert sum("not listed any more" in text for text in texts) == 1
        server.rate(3, **{"aspect-0": "right"})
    file = read_rating_file(results / "ratings" / GOLD / "ann.jsonl")
    assert [made.scores[GOLD] for made in file.ratings.values()] == ["wrong", "right"]
    assert file.rated_in_stratum() == [1, 1]
    assert [stratum.task for stratum in file.plan.strata] == [TASKS[1], TASKS[0]]


def test_a_scale_with_too_many_scores_for_keys_has_a_field() -> None:
    manifest, samples = answered(MODELS[1], TASKS[:1], limit=1)
    (sample,) = samples[TASKS[0]]
    scales = (Aspect(name="long", maximum=100), Aspect(name="short", minimum=1, maximum=5))
    rubric = load_rubric("med_cmr_open").model_copy(update={"aspects": scales, "cap": None})
    long, short = asked_answer(sample, manifest, rubric).aspects
    assert (long.choices, long.minimum, long.maximum) == ((), 0, 100)
    assert [choice.key for choice in short.choices] == ["1", "2", "3", "4", "5"]
    assert [long.score_of(text) for text in ("77", "101", "7.5", "x")] == [77, None, None, None]
    assert [short.score_of(text) for text in ("0", "5")] == [None, 5]
