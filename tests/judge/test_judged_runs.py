"""``medtasks judge`` on runs of the real harness: every figure follows from the verdicts, and
nothing is lost.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean as mean
from typing import Any

import pytest
from judged_run import content, exported, judged, manifest_of, samples_of, scores_of, settings_of
from medtasks.leaderboard.verify.scored_run import scored_run

from medtasks.core.errors import MedtasksError, UsageError
from medtasks.judge.store import StoredVerdict, VerdictStore
from medtasks.judge.stub import StubJudge, rule_based
from medtasks.scoring.judge_identity import judge_names
from medtasks.scoring.run_cache import user_store
from medtasks.scoring.run_folder import read_run, write_run
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.verified_runs import scored_record


def sometimes(share: float) -> Any:
    """A judge that answers in prose for some prompts, whatever it is asked again."""

    def decide(request: Mapping[str, Any]) -> str:
        prompt = request["messages"][0]["content"]
        chance = int(hashlib.sha256(prompt.encode()).hexdigest()[:8], 16) / 16**8
        return "I would rather not say." if chance < share else rule_based(request)

    return decide


def test_every_kvasir_figure_is_a_count_over_the_exported_verdicts(
    kvasir: Path, tmp_path: Path
) -> None:
    """Med-CMR's are recomputed in the demo's test (`tests/harness`)."""
    with StubJudge() as stub:
        scores = judged(
            kvasir, settings_of(stub), store=tmp_path / "v", export=tmp_path / "x.jsonl"
        )
    asked = [sample for samples in read_run(kvasir)[1].values() for sample in samples]
    named = {sample.sample_id: sample.document["question_class"] for sample in asked}
    lines = exported(tmp_path / "x.jsonl")
    for name in ("kvasir_vqa_x1", *(f"kvasir_vqa_x1_level{level}" for level in (1, 2, 3))):
        given = [line for line in lines if name in (line["task"], "kvasir_vqa_x1")]
        verdicts = [line["scores"] for line in given]
        points = [(aspect, score) for one in verdicts for aspect, score in one.items()]
        # a class named twice counts twice in the authors' counting: arXiv 2506.09958, where the
        # counts of Table 4 are exactly 1, 2 and 3 times those of its levels
        often = [
            (aspect, line["scores"][aspect])
            for line in given
            for aspect in named[line["sample_id"]]
        ]
        found = scores[name]["metrics"]
        assert found["judged_accuracy"]["judged"] == len(given)
        assert found["judged_strict"]["value"] == mean([all(one.values()) for one in verdicts])
        partial = [sum(one.values()) / len(one) for one in verdicts]
        assert found["judged_partial"]["value"] == pytest.approx(mean(partial), abs=1e-15)
        classes = {
            aspect: one["metrics"]
            for aspect, one in scores[name]["breakdowns"]["question_class"].items()
        }
        for part, metrics in {None: found, **classes}.items():
            for metric, counted in (
                ("judged_accuracy", points),
                ("judged_accuracy_repeated", often),
            ):
                assert metrics[metric]["value"] == mean(
                    [score for aspect, score in counted if part in (None, aspect)]
                )
    assert 0 < found["judged_accuracy"]["value"] < 1
    assert (
        found["judged_accuracy_repeated"]["value"] != found["judged_accuracy"]["value"]
    )  # or this shows nothing


def test_medstream_content_joins_rules_and_verdicts(medstream: Path, tmp_path: Path) -> None:
    before = scores_of(medstream)["medstreambench"]["metrics"]["content"]
    assert before["value"] is None
    with StubJudge() as stub:
        scores = judged(
            medstream, settings_of(stub), store=tmp_path / "v", export=tmp_path / "x.jsonl"
        )
    lines = exported(tmp_path / "x.jsonl")
    verdicts = {
        one["sample_id"]: sum(one["scores"].values()) / 5
        for one in lines
        if one["rubric"] == "medstream_rubric"
    }
    items: dict[str, list[float]] = defaultdict(list)
    for task in manifest_of(medstream)["tasks"]:
        for sample in samples_of(medstream, task):
            document = sample["document"]
            assert sample["pending"] == []  # also where a judge is not asked
            if document["question_type"] == "open":
                # before an alert is due, both states without one are right (the protocol card,
                # content C)
                silent = (
                    ("no_alert", "uncertain") if document["temporal_mode"] == "proactive" else ()
                )
                right = sample["filtered"] in (*document["expected"], *silent)
                by_rule = float(not document["answerable"] and right)
                items[document["item_id"]].append(verdicts.get(sample["sample_id"], by_rule))
    found = scores["medstreambench"]["metrics"]
    opened, closed, content = found["content_open"], found["content_closed"], found["content"]
    assert opened["samples"] == len(items) > 3
    assert opened["value"] == pytest.approx(mean(map(mean, items.values())), abs=1e-12)
    whole = sum(part["samples"] * part["value"] for part in (opened, closed)) / (
        opened["samples"] + closed["samples"]
    )
    assert content["value"] == pytest.approx(whole, abs=1e-12)
    low, high = before["bounds"]
    assert low <= content["value"] <= high
    assert content["signature"].startswith(before["signature"] + "|judge:")
    assert "content_closed_fallback" not in found


def test_the_closed_fallback_counts_beside_the_rule_and_moves_nothing_else(
    medstream: Path, tmp_path: Path
) -> None:
    before = scores_of(medstream)["medstreambench"]["metrics"]

    def agrees(_: Mapping[str, Any]) -> str:
        return json.dumps({"same_answer": {"reason": "in other words", "score": 1}})

    with StubJudge(agrees) as stub:
        judged(
            medstream,
            settings_of(stub),
            store=tmp_path / "v",
            rubrics=["medstream_closed_fallback"],
        )
    found = scores_of(medstream)["medstreambench"]["metrics"]
    asked = manifest_of(medstream)["judge"]["medstream_closed_fallback"]["asked"]
    assert asked > 0
    samples = [
        one for task in manifest_of(medstream)["tasks"] for one in samples_of(medstream, task)
    ]
    put = {
        one["sample_id"]
        for one in samples
        if one["verdicts"]["medstream_closed_fallback"][0]["judges"]
    }
    mismatches = {
        one["sample_id"]
        for one in samples
        if one["scores"]["content"] == 0
        and one["document"]["question_type"] == "closed"
        and one["document"]["answerable"]
        and one["status"] == "ok"
        and (one["document"]["temporal_mode"] != "proactive" or one["filtered"].startswith("alert"))
    }
    assert put == mismatches
    assert len(put) == asked
    assert found["content_closed_fallback"]["value"] > found["content_closed"]["value"]
    # all content with the fallback: its closed part is decided, the open answers still await their
    # judge
    closed, open_ = found["content_closed_fallback"], found["content_open"]
    items = closed["samples"] + open_["samples"]
    sums = (
        closed["samples"] * closed["value"] + open_["samples"] * bound for bound in open_["bounds"]
    )
    assert found["content_fallback"]["bounds"] == pytest.approx([one / items for one in sums])
    assert before.pop("content_fallback")["value"] is None
    for name, score in before.items():
        assert found[name] == score, name


def test_what_has_no_verdict_is_named_and_bounds_the_score(folder: Path, tmp_path: Path) -> None:
    with StubJudge(sometimes(0.4)) as stub:
        scores = judged(folder, settings_of(stub), store=tmp_path / "v")
    facts = manifest_of(folder)["judge"]["med_cmr_open"]
    samples = [sample for task in facts["tasks"] for sample in samples_of(folder, task)]
    totals = [sample["scores"]["open_total"] for sample in samples]
    known = [total for total in totals if total is not None]
    missing = len(totals) - len(known)
    assert 0 < missing < len(totals)
    assert facts["unjudged"] == {"invalid after one repair": missing}
    assert (facts["asked"], facts["judged"]) == (len(totals), len(known))
    score = scores["med_cmr_open"]["metrics"]["open_total"]
    assert score["value"] == pytest.approx(sum(known) / len(known))
    assert (score["judged"], score["samples"], score["incomplete"]) == (
        len(known),
        len(totals),
        True,
    )
    low, high = sum(known) / len(totals), (sum(known) + 100 * missing) / len(totals)
    assert score["bounds"] == pytest.approx([low, high])
    (unjudged,) = {
        sample["verdicts"]["med_cmr_open"][0]["judges"]["stub-judge"]["unjudged"]
        for sample in samples
    } - {None}
    assert unjudged == "invalid after one repair"
    with StubJudge(sometimes(0.4)) as stub:
        scores = judged(folder, settings_of(stub), store=tmp_path / "v", threshold=0.1)
        assert stub.requests == []  # all of that is in the store
    assert scores["med_cmr_open"]["metrics"]["open_total"]["incomplete"] is False


@pytest.mark.slow
def test_two_judges_decide_where_they_agree(
    kvasir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with StubJudge() as strict, StubJudge(sometimes(0.2)) as shy:
        one, other = settings_of(strict), settings_of(shy, name="other", model="qwen-judge")
        judged(kvasir, one, other, store=tmp_path / "v", rubrics=["kvasir_aspects"])
    facts = manifest_of(kvasir)["judge"]["kvasir_aspects"]
    assert set(facts["judges"]) == {"stub-judge", "other"}
    assert set(facts["unjudged"]) == {"other: invalid after one repair"}
    pooled = [one for one in facts["agreement"]["measures"] if one["aspect"] is None]
    assert {one["value"] for one in pooled} == {1.0}  # they follow one rule
    assert "Cohen's kappa" in capsys.readouterr().out

    def generous(request: Mapping[str, Any]) -> str:
        verdict = json.loads(rule_based(request))
        return json.dumps({aspect: {"reason": "", "score": 1} for aspect in verdict})

    with StubJudge() as strict, StubJudge(generous) as kind:
        judges = settings_of(strict), settings_of(kind, name="kind", model="kind")
        majority = judged(kvasir, *judges, store=tmp_path / "v", rubrics=["kvasir_aspects"])
        unjudged = manifest_of(kvasir)["judge"]["kvasir_aspects"]["unjudged"]
        mean_ = judged(
            kvasir, *judges, store=tmp_path / "v", rubrics=["kvasir_aspects"], combine="mean"
        )
    assert set(unjudged) == {"judges disagree"}
    tied = majority["kvasir_vqa_x1"]["metrics"]["judged_accuracy"]
    assert tied["samples"] - tied["judged"] == unjudged["judges disagree"]
    assert tied["value"] == 1.0  # all that the strict one gave points for
    alone = tied["bounds"][0]
    assert mean_["kvasir_vqa_x1"]["metrics"]["judged_accuracy"]["value"] == pytest.approx(
        (alone + 1) / 2
    )
    assert mean_["kvasir_vqa_x1"]["metrics"]["judged_accuracy"]["signature"] != tied["signature"]


def test_people_s_labels_are_compared_with_the_judge(folder: Path, tmp_path: Path) -> None:
    sample = samples_of(folder, "med_cmr_open_ltg")[0]
    path = tmp_path / "people.csv"
    path.write_text(
        f"sample_id,aspect,score,rater\n{sample['sample_id']},coherence,5,ann\nnobody,coherence,1,ann\n"
    )
    with StubJudge() as stub:
        with pytest.raises(UsageError, match="exactly one rubric"):
            judged(folder, settings_of(stub), store=tmp_path / "v", human=path)
        judged(
            folder, settings_of(stub), store=tmp_path / "v", human=path, rubrics=["med_cmr_open"]
        )
    agreement = manifest_of(folder)["judge"]["med_cmr_open"]["agreement"]
    assert agreement["raters"] == ["ann", "stub-judge"]
    units = {(one["aspect"], one["measure"]): one["units"] for one in agreement["measures"]}
    assert units["coherence", "raw agreement"] == 1


@pytest.mark.parametrize("place", ["checkpoint", "model_args"])
def test_the_summary_warns_of_a_judge_of_the_model_s_family_and_of_a_stub(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    if place == "checkpoint":
        manifest["model"]["checkpoint"] = "Qwen/Qwen2.5-VL-7B-Instruct"
    else:
        manifest["settings"]["model_args"] = "predictions=qwen2.5-vl.jsonl,seed=1"
    path.write_text(json.dumps(manifest))
    with StubJudge() as stub:
        judged(
            folder,
            settings_of(stub, model="Qwen3-32B"),
            store=tmp_path / "v",
            rubrics=["med_cmr_open"],
        )
    (warning,) = manifest_of(folder)["judge"]["med_cmr_open"]["warnings"]
    assert "of the same family" in warning
    assert f"warning: {warning}" in capsys.readouterr().out
    with StubJudge() as stub:
        judged(folder, settings_of(stub, name="mine"), store=tmp_path / "v")
    assert "med_cmr_open: judged by stub-judge (a stub)" in capsys.readouterr().out
    names = judge_names(read_run(folder)[0])
    assert set(names.values()) == {"stub-judge (a stub)"}
    assert {"med_cmr_open", "med_cmr_open_sod"} <= set(names)


def test_a_budget_is_for_all_rubrics_together(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with StubJudge() as stub:
        rubrics = ["med_cmr_open", "med_cmr_medreason"]
        judged(folder, settings_of(stub, concurrency=2), store=tmp_path / "v", rubrics=rubrics[:1])
        asked = len(stub.requests)
        judged(
            folder,
            settings_of(stub, concurrency=2),
            store=tmp_path / "w",
            rubrics=rubrics,
            max_requests=asked + 3,
        )
        assert len(stub.requests) == 2 * asked + 3
    now = [
        line.split()[1] for line in capsys.readouterr().out.splitlines() if "requests now" in line
    ]
    assert now == [f"{asked}", f"{asked}", "3"]  # of each rubric


def test_several_judges_that_fail_together_say_it_once(
    kvasir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where the store fails in the middle of all."""
    puts, stored = VerdictStore.put, list[str]()

    def put(store: VerdictStore, verdict: StoredVerdict) -> bool:
        stored.append(verdict.key)
        if len(stored) > 5:
            store._connection.close()
        return puts(store, verdict)

    monkeypatch.setattr(VerdictStore, "put", put)
    with StubJudge(latency=0.02) as stub:
        judges = [
            settings_of(stub, name=f"j{number}", model=f"m{number}", concurrency=4)
            for number in range(4)
        ]
        with pytest.raises(UsageError, match="verdict store"):
            judged(kvasir, *judges, store=tmp_path / "v", rubrics=["kvasir_aspects"])
    # the stub's server may be ended while it answers
    assert [one for one in caplog.records if one.name != "aiohttp.server"] == []


def test_a_directory_that_has_all_verdicts_is_left_as_it_is(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stamp = manifest_of(folder)["harness_stamp"] or folder.name.removesuffix("_medtasks")
    harness = folder.parent / f"{stamp}_results.json"
    harness.write_text('{"results": {}, "medtasks": {}}')
    (folder / "notes.txt").write_text("mine")
    with StubJudge() as stub:
        judged(folder, settings_of(stub), store=tmp_path / "v")
        first, asked, numbers = content(folder), len(stub.requests), harness.read_bytes()
        assert first["notes.txt"] == b"mine"
        assert [path.name for path in folder.parent.iterdir() if path.name.startswith(".")] == []
        capsys.readouterr()
        judged(folder, settings_of(stub), store=tmp_path / "empty")
        assert "nothing is left to ask" in capsys.readouterr().out
        assert (content(folder), len(stub.requests)) == (first, asked)
        harness.write_bytes(
            numbers.replace(b'"intervals"', b'"else"')
        )  # as if it had been killed before the last step
        judged(folder, settings_of(stub), store=tmp_path / "v")
        assert (
            json.loads(harness.read_bytes())["medtasks"]["intervals"]
            == json.loads(numbers)["medtasks"]["intervals"]
        )
        assert len(stub.requests) == asked
        judged(folder, settings_of(stub, model="another"), store=tmp_path / "v")
        assert len(stub.requests) == 2 * asked


def test_scoring_again_keeps_the_verdicts_but_those_on_another_text(
    folder: Path, tmp_path: Path
) -> None:
    """Another text: as if a later filter took another part of the response for the answer."""
    with StubJudge() as stub:
        judged(folder, settings_of(stub), store=tmp_path / "v", rubrics=["med_cmr_open"])
    again = scored_record(*read_run(folder), own=True, whole=True)
    assert again.changes == ()
    out = write_run(tmp_path / "again", again.rescored)
    assert scores_of(out) == scores_of(folder)

    path = folder / "samples" / "med_cmr_open_ltg.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["responses"] = ["Something else. Final answer: none."]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    again = scored_record(*read_run(folder), own=True, whole=True)
    changed = next(
        one for one in again.samples["med_cmr_open_ltg"] if one.sample_id == lines[0]["sample_id"]
    )
    assert changed.verdicts == {}
    assert "open_total" in changed.pending
    score = again.tasks["med_cmr_open_ltg"].metrics["open_total"]
    assert (score.value, score.judged) == (None, score.samples - 1)
    assert score.reason == f"1 of {score.samples} items await a judge"


def test_a_judge_that_can_see_is_shown_the_images_even_of_a_blind_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_BLIND", "1")
    with StubJudge() as stub:
        judged(
            folder,
            settings_of(stub, images="true"),
            store=tmp_path / "v",
            rubrics=["med_cmr_medreason"],
        )
        parts = [body["messages"][0]["content"] for body in stub.requests]
        numbers = {
            len(sample["media"])
            for task in ("ltg", "msi")
            for sample in samples_of(folder, f"med_cmr_open_{task}")
        }
        assert {len(content) - 1 for content in parts} >= numbers
        assert all(
            part["image_url"]["url"].startswith("data:image/")
            for content in parts
            for part in content[:-1]
        )
        assert (
            manifest_of(folder)["judge"]["med_cmr_medreason"]["judges"]["stub-judge"]["images"]
            is True
        )
        path = folder / "manifest.json"
        path.write_text(
            path.read_text().replace(
                manifest_of(folder)["data"]["med_cmr"]["fingerprint"], "0" * 16
            )
        )
        with pytest.raises(MedtasksError, match="prepare the same data"):
            judged(
                folder,
                settings_of(stub, images="true"),
                store=tmp_path / "v",
                rubrics=["med_cmr_medreason"],
            )


@pytest.mark.slow
def test_judges_are_asked_with_the_references_of_the_data(kvasir: Path, tmp_path: Path) -> None:
    """Whatever the directory claims; and what it claims of other scores is not kept as if it were
    scored here.
    """
    manifest, samples = read_run(kvasir)
    forged = {
        task: [
            one.model_copy(
                update={
                    "target": one.filtered,
                    "statistics": {**one.statistics, "rougeL": (1.0, 1.0)},
                }
            )
            for one in members
        ]
        for task, members in samples.items()
    }
    folder = write_run(tmp_path / kvasir.name, RunRecord(manifest, forged, {}, {}))
    with StubJudge() as stub:
        honest = judged(kvasir, settings_of(stub), store=tmp_path / "v")
        asked = len(stub.requests)
        found = judged(folder, settings_of(stub), store=tmp_path / "v")
        assert len(stub.requests) == asked  # the same questions, whose verdicts are stored
    name = "judged_accuracy"
    assert found["kvasir_vqa_x1"]["metrics"][name] == honest["kvasir_vqa_x1"]["metrics"][name]
    assert scored_run(folder, user_store()).scores == scored_run(kvasir, user_store()).scores
