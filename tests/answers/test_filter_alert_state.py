"""Alert states: a table of replies as models write them, and properties of the rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks.answers.alert_state import alert_status, parse_alert

QUIET = {
    "no_alert": [
        "There is no alert needed.", "There is no alert needed in this clip because it is clear.",
        "no_alert", "No_Alert", "NO_ALERT.", "no alert", "No alert.", "no-alert", "NoAlert", "no\u2011alert",
        " no_alert\n",
        "**no_alert**", "`no_alert`", "`no_alert`.", '"no_alert"', "'no_alert'", "[no_alert]", "(no alert)",
        "__no_alert__",
        "# no_alert", "- no_alert", "* no_alert", "> no_alert", "1. no_alert", "```\nno_alert\n```",
        "```text\nno_alert\n```",
        "ｎｏ＿ａｌｅｒｔ", "no_alert。", "Response: no_alert", "**Response:** no_alert", "response = no_alert",
        "State: no alert",
        "Answer: no_alert", "The answer is no_alert.", "My response is `no_alert`.", "### Response\nno_alert",
        "**Answer**\n\nno_alert", "Final answer: no_alert", "\\boxed{no_alert}", "<answer>no_alert</answer>",
        "<response>no_alert</response>", '{"state": "no_alert"}', '{"state": "no_alert", "reason": "clear view"}',
        '```json\n{\n  "state": "no_alert",\n  "reason": ""\n}\n```', "{'state': 'no_alert', 'reason': 'none'}",
        '{"alert": false}', '{"alert": false, "reason": "nothing seen"}', "<think>alert: bleeding?</think>no_alert",
        "it bleeds, alert</think>no_alert", "no_alert: nothing suspicious is visible", "no_alert - the view is clear",
        "no_alert (clear view)", "No alert, as the mucosa is normal.", "No alert because nothing bleeds.",
        "No alert needed.", "No alert is needed at this time.", "No alert at this time.",
        "No alert yet, but watch it.",
        "no_alert\n\nThe view is clear, so there is nothing to report.", "The view is clear.\n\nno_alert",
        "The view is clear. No alert.", "It may bleed.\nResponse: alert: oozing\nFinal answer: no_alert",
        "no_alert: x\nuncertain: y\nalert: z\nResponse: no_alert", "Round 3: no_alert", "[12.0 s] no_alert",
        "t = 12s: no_alert",
        "Alert: no_alert", "Alert: No", "alert: none.", "Alert: false", "Alert: no alert needed",
        "Alert status: no_alert",
        "Alert:\nno_alert", "Alert: no_alert\nReason: clear", '{"alert": "no_alert", "reason": "clear"}',
        "I would respond: no_alert", "The current state is no_alert because nothing bleeds.",
        "Alert: No\nThe view is clear.", "Alert: No. The view is clear.",
        "**Alert:** None\n**Reason:** clear", "assistant\nno_alert<|im_end|>", "no_alert</s>", "| State | no_alert |",
        "The clip is clean, so the answer is: no_alert.", "Uncertain at first. Final answer: no_alert",
        "no_alert no_alert", "I would respond with no_alert because nothing bleeds.",
        "alert: clip\nCorrection: no_alert",
        "alert: bleeding... correction, that is fluid.\n\nno_alert", "目前画面正常，因此：no_alert", "无需警报",
        "One of: no_alert, alert: <answer>, uncertain.\n\nno_alert",
        "no_alert\nno_alert", "uncertain\nFinal answer: alert: none",
        "alert: oozing? Final answer: no_alert", "- Response: **no_alert**", "Decision - no alert", "<b>no_alert</b>",
    ],
    "uncertain": [
        "uncertain", "Uncertain.", "UNCERTAIN", "**Uncertain**", "`uncertain`", "Response: uncertain",
        "state: Uncertain.",
        "uncertain: smoke hides the field", "Uncertain - smoke", "Uncertain, the lens is blurred.",
        "uncertain (smoke)",
        "Uncertain because of smoke.", "I am uncertain, because the lens is wet.", "uncertain uncertain", "不确定",
        "Uncertain at this time.", '{"state": "uncertain"}', "Alert: uncertain",
        "alert: uncertain - the view is blocked", "Smoke everywhere.\nuncertain", "<think>no_alert</think>\nUncertain",
        "Answer: no_alert\nFinal answer: uncertain", "Final decision\nuncertain",
        "Uncertain. The alertness is unknown.",
        "uncertain - an alert is not warranted", '{"answer": "Uncertain"}', "The state is unclear. Answer: uncertain",
    ],
}  # fmt: skip

ALERTS = {
    "": [
        "alert", "ALERT", "Alert.", "ALERT!", "**Alert**", "`alert`", "alert:", "Response: alert",
        "Final answer: **ALERT**",
        '{"state": "alert"}', '{"alert": true}', "Alert: yes", "no_alert at first\nFinal answer: alert",
        "Alert needed.",
        "<think>no_alert</think>alert",
    ],
    "bleeding": [
        "so: alert: bleeding",
        "alert: bleeding", "Alert: bleeding", "ALERT: bleeding", "alert : bleeding", "alert:bleeding",
        "Alert - bleeding",
        "Alert – bleeding", "Alert—bleeding", "alert -> bleeding", "Alert! bleeding", "Alert. bleeding",
        "alert (bleeding)", "!!! ALERT !!! bleeding", "🚨 **ALERT**: bleeding",
        "alert, bleeding", "alert; bleeding", "alert = bleeding", "**alert**: bleeding", "**Alert:** bleeding",
        "**alert: bleeding**", "`alert: bleeding`", "alert: `bleeding`", '"alert: bleeding"', "# Alert: bleeding",
        "- alert: bleeding", "> alert: bleeding", "1. alert: bleeding", "```\nalert: bleeding\n```",
        "ａｌｅｒｔ：bleeding",
        "alert：bleeding", "Alert\nbleeding", "## Alert\n\nbleeding", "State: alert: bleeding",
        "State: alert - bleeding",
        "Response: alert: bleeding", "Response:\nalert: bleeding", "The answer is alert: bleeding",
        "alert\nReason: bleeding", "**State:** alert\n**Reason:** bleeding", "Reason: bleeding\nState: alert",
        '{"state": "alert", "reason": "bleeding"}', '{"reason": "bleeding", "state": "alert"}',
        '{"alert": "bleeding"}',
        '{"response": "alert: bleeding"}', '{"state": "ALERT", "reason": "bleeding", "confidence": 0.9}',
        "{'state': 'alert', 'reason': 'bleeding'}", '{"state": "alert", "reason": "bleeding', "Alert because bleeding",
        'It pools.\n```json\n{"state": "alert", "reason": "bleeding"}\n```', "alert: alert: bleeding",
        "The state is no_alert at first.\nno_alert\nFinal answer: alert: bleeding", "Blood pools.\nalert: bleeding",
        "Blood pools. Alert: bleeding", "Round 4: alert: bleeding", "alert: bleeding\nFinal answer: alert",
        "Alert due to bleeding", "<alert>bleeding</alert>",
        "<state>alert</state><reason>bleeding</reason>", "\\boxed{alert: bleeding}", "alert: alert - bleeding",
    ],
    "bleeding from the vessel; the clip slipped.": [
        "alert: bleeding from the vessel;\nthe clip slipped.",
        "alert:\n\nbleeding from the vessel;\n  the clip slipped.",
    ],
    "bleeding.": ["alert: bleeding. Final answer: alert", "Final answer: alert: bleeding."],
    "perforation; status: uncertain": ["alert: perforation; status: uncertain"],
    "oozing; its response is uncertain": ["alert: oozing; its response is uncertain"],
    "bleeding seen (left) at 5 s": ["alert: bleeding seen (left) at 5 s"],
    "no clip on the artery": ["alert: no clip on the artery", "Alert - no clip on the artery"],
    "uncertain source of blood": ["alert: uncertain source of blood"],
}  # fmt: skip

REFUSED = {
    "invalid": [
        "not an alert", "Not alert",
        "Answer: not an alert", "alertness", "Alertness is normal.", "The patient is alert.",
        "alert: <answer>", "no_alert / alert: <answer> / uncertain", "alert: <reason> | no_alert | uncertain",
        "alert and oriented", "Alert fatigue is common.", "uncertain whether to alert",
        "I am uncertain whether to alert.",
        "alert or uncertain", "no_alert or alert", "no_alert | uncertain | alert: <reason>",
        "no_alert/uncertain", "no_alert, uncertain", "uncertain (alert)", "no_alert: alert", "Alert?",
        "Should we alert?",
        "alerted", "alerts", "no_alertness", "The mucosa is normal.", "unanswerable", "?", "42", "Response:",
        "State: unclear",
        "no_alert\nalert: bleeding", "Response: alert: bleeding\nResponse: no_alert",
        "State: uncertain\nState: no_alert",
        "Response: alert\n\nno_alert", "- no_alert: clear\n- uncertain: smoke\n- alert: blood", "Alert level: low",
        "I would raise an alert for bleeding.", "This does not warrant an alert: the view is clear.", "uncertainty",
        "no",
        "The status is uncertain whether alert", "Final answer: alert\nFinal answer: uncertain",
        '{"finding": "blood"}',
    ],
    "empty": ["", " ", "\n\t", "***", "<think>alert: bleeding</think>", "<think>alert: cut off", "```\n```"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "state"), [(r, s) for s, replies in QUIET.items() for r in replies], ids=repr
)
def test_a_state_without_alert(reply: str, state: str) -> None:
    response = parse_alert(reply)
    assert (response.filtered, response.reason, response.status) == (state, "", "ok")


@pytest.mark.parametrize(
    ("reply", "reason"), [(r, s) for s, replies in ALERTS.items() for r in replies], ids=repr
)
def test_an_alert_and_its_reason(reply: str, reason: str) -> None:
    response = parse_alert(reply)
    assert (response.state, response.reason) == ("alert", reason)
    assert response.filtered == (f"alert: {reason}" if reason else "alert")


@pytest.mark.parametrize(
    ("reply", "status"), [(r, s) for s, replies in REFUSED.items() for r in replies], ids=repr
)
def test_no_single_state(reply: str, status: str) -> None:
    response = parse_alert(reply)
    assert (response.state, response.reason, response.filtered) == (None, "", f"[{status}]")
    assert alert_status(reply) == status


STATES = st.sampled_from(
    ("no_alert", "uncertain", "alert", "alert: active bleeding from the left wall")
)
ENVELOPES = (
    "{}.", "**{}**", "`{}`", "# {}", "- {}", "> {}", "1. {}", '"{}"', "({})", "[{}]", "  {}\n\n", "```\n{}\n```",
    "{}</s>",
    "Response: {}", "**Response:** {}", "State: {}", "### Answer\n\n{}", "Final answer: {}", "<answer>{}</answer>",
    "<think>alert: no</think>{}", "The clip was seen.\nFinal answer: {}", "no_alert\nuncertain\nFinal answer: {}",
    "Round 2: {}",
)  # fmt: skip
PIECES = st.lists(
    st.sampled_from(
        ["alert", "no_alert", "No alert", "uncertain", ":", "\n", " ", " - ", ".", "Answer: ", "Final answer: ",
        "Reason: ", "{",
         "}", '"', "**", "`", "#", "<think>", "</think>", "<", ">", "bleeding", "because ", "\\boxed{", "$", "_",
         "no", "yes", "(",
         '{"state": "', "<answer>", "</answer>", "Response\n", "|", "/", "1.", "ﬁ", "e", "\u0301", "*", "[invalid]"]
    ),
    max_size=12,
).map("".join)  # fmt: skip


@given(STATES, st.sampled_from(ENVELOPES), st.sampled_from((str, str.upper, str.title)))
def test_decoration_never_changes_the_state(state: str, envelope: str, case: type[str]) -> None:
    plain, decorated = parse_alert(state), parse_alert(envelope.format(case(state)))
    assert decorated.state == plain.state
    assert decorated.reason.rstrip(".)]").casefold() == plain.reason


@given(st.one_of(st.text(), PIECES))
def test_any_text_gives_a_status_and_filtering_is_idempotent(text: str) -> None:
    response = parse_alert(text)
    assert (response.state is not None) == (response.status == "ok")
    assert not response.reason or response.state == "alert"
    assert parse_alert(response.filtered) == response


@given(st.text(alphabet="abcdfghijkmnopqsuvwxyz ,.\n", max_size=80))
def test_text_without_a_state_is_never_one(prose: str) -> None:
    assert parse_alert(prose).state is None


@given(PIECES, STATES)
def test_thinking_never_counts(thought: str, state: str) -> None:
    inside = thought.replace("<think>", "").replace("</think>", "")
    assert parse_alert(f"<think>{inside}</think>{state}") == parse_alert(state)


DENIED = [
    "Alert is not needed.",
    "Alert is not needed here.",
    "There is no reason to alert.",
    "An alert is not warranted.",
    "alert level: none",
    "Alert level: none",
    "No reason for an alert",
    "There is no need for an alert at this time.",
    "An alert is unnecessary.",
    "alert status: none",
    "Alerts: none",
    "I see no reason to raise an alert.",
    "Nothing to alert.",
    "There is nothing that warrants an alert.",
    "The view is clear. There is no reason to alert.",
    "No need to alert.",
    "I would not alert.",
    "I don't see any reason to alert.",
    "There isn't any reason for an alert.",
    "This does not warrant an alert.",
    "Nothing here requires an alert",
    "No grounds for alert",
    "Alert: none at this time.",
    "alert: none so far",
    "An alert isn't needed",
    "No reason to raise the alert.",
    "No alerts at the moment.",
    "Geen alarm op dit moment",
    "Нет тревоги на данный момент",
    "Hiện tại không có cảnh báo",
    "현재 경보 없음",
    "Şu anda uyarı yok",
    "Aucune alerte actuellement",
    "Momentan kein Alarm.",
    "Derzeit kein Alarm",
    "Actualmente sin alerta",
    "No hay alerta",
    "No hay motivo de alerta",
    "Não há alerta",
    "Il n'y a pas d'alerte",
    "Es gibt keinen Grund für einen Alarm",
    "alert = none",
    "Alert level: 0",
    "State: no_alert. Reason: none",
    "**Alert level:** none",
    '{"alert_level": "none"}',
    '{"alert": "none"}',
    '{"alert": false}',
    "no alert currently",
    "no_alert. Correction: still no_alert",
]
"""Replies that deny an alert in other words than `no_alert`."""

CORRECTED = {
    "no_alert. Correction: the vessel is bleeding. alert: active bleeding": "alert: active bleeding",
    "no_alert. Wait, there is blood. alert: active bleeding": "alert: active bleeding",
    "no_alert. Hmm, wait - alert: bleeding from the cystic artery": "alert: bleeding from the cystic artery",
    "no_alert. Correction: the vessel bleeds, alert: bleeding": "alert: bleeding",
    "no_alert. Actually, alert: polyp": "alert: polyp",
    "alert: polyp. Correction: this is a bubble. no_alert": "no_alert",
    "alert: polyp. Actually, it is a bubble. no_alert": "no_alert",
    "uncertain. Correction: no_alert": "no_alert",
    "alert: bleeding; actually, uncertain": "uncertain",
    "alert: polyp. Actually visible since 3 s.": "alert: polyp. Actually visible since 3 s.",
    "alert: the stapler misfired. Wait for the surgeon.": "alert: the stapler misfired. Wait for the surgeon.",
}
"""Corrections on one line, and reasons that only look like one."""


@pytest.mark.parametrize("reply", DENIED)
def test_an_alert_that_is_denied_is_no_alert(reply: str) -> None:
    assert parse_alert(reply).state == "no_alert"


@pytest.mark.parametrize(("reply", "filtered"), CORRECTED.items())
def test_a_correction_on_the_same_line_replaces_the_state_before_it(
    reply: str, filtered: str
) -> None:
    assert parse_alert(reply).filtered == filtered
    assert parse_alert(filtered).filtered == filtered


@pytest.mark.parametrize(
    "reply",
    [
        "If there is no reason to alert, stay silent.",
        "Is there no reason to alert?",
        "There is no reason to alert; however, bleeding is possible: uncertain",
        "alert: none. no_alert. uncertain.",
    ],
)
def test_a_denial_that_is_conditional_asked_or_contradicted_is_no_state(reply: str) -> None:
    assert parse_alert(reply).status == "invalid"


@pytest.mark.parametrize(
    "reason", ["none of the clips hold", "no blood flow in the graft", "nothing seals the leak"]
)
def test_a_reason_that_begins_with_a_denial_is_still_a_reason(reason: str) -> None:
    assert parse_alert(f"alert: {reason}").filtered == f"alert: {reason}"
