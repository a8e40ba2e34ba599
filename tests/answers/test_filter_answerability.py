"""Abstentions: the word counts where it is what the reply says, not where it is mentioned."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks.answers.answerability import (
    UNANSWERABLE,
    answer_or_unanswerable,
    answerability_status,
)

ABSTAINS = [
    "unanswerable", "Unanswerable", "UNANSWERABLE.", " unanswerable\n", "unanswerable!", "**unanswerable**",
    "*Unanswerable*",
    "`unanswerable`", '"unanswerable"', "'Unanswerable.'", "(unanswerable)", "[unanswerable]", "# Unanswerable",
    "- unanswerable",
    "> unanswerable", "```\nunanswerable\n```", "ｕｎａｎｓｗｅｒａｂｌｅ", "un-answerable", "Answer: unanswerable.",
    "answer: Unanswerable",
    "**Answer:** unanswerable", "**Answer: unanswerable**", "Final answer: unanswerable", "### Answer\nunanswerable",
    "Answer:\n\nunanswerable", "Answer: Answer: unanswerable", "The answer is unanswerable.", "Response: unanswerable",
    "<answer>unanswerable</answer>", "\\boxed{unanswerable}", '{"answer": "unanswerable"}',
    "<think>a polyp?</think>unanswerable",
    "a polyp?</think>\n\nUnanswerable.", "unanswerable - the evidence is not visible", "Unanswerable: smoke",
    "unanswerable (smoke)",
    "Unanswerable. The lens is covered.", "Unanswerable, because of smoke", "unanswerable because the lens is dirty",
    "Unanswerable\n\nThe lens is covered.", "unanswerable—smoke", "unanswerable; too dark",
    "The question is unanswerable.",
    "This question is unanswerable from the frames.", "It is unanswerable", "unanswerable</s>",
    "unanswerable<|im_end|>",
    "The lens is covered, the view dark.\nAnswer: unanswerable", "Perhaps a polyp.\n**Final answer:** unanswerable",
    "Answer: a polyp\nFinal answer: unanswerable", "Unanswerable from the visible frames.",
    "unanswerable\nunanswerable", "I cannot tell.", "I don't know.", "Not answerable from the given clip.",
    "The question cannot be answered because the instrument is outside the field of view.", "无法回答",
    "There isn't enough visual information.", "Based on the frames, unanswerable.", "Respond: unanswerable",
    "Insufficient evidence in the given window.", "The video does not show this.",
]  # fmt: skip

NOT_YET = [
    "It cannot yet be determined whether the clip will be applied.",
    "It cannot yet be determined.",
    "Too early to tell.",
    "It is too early to tell.",
    "The evidence is insufficient at this time.",
    "Not yet determinable.",
    "Not yet determinable",
    "The frames do not allow this to be determined.",
    "目前无法回答",
    "暂时无法判断",
    "目前无法回答。",
    "暂时无法判断。",
    "目前还无法确定",
    "尚无法判断",
    "The evidence is insufficient.",
    "Evidence is insufficient at this time",
    "At this point, this cannot be determined.",
    "It is not yet possible to say.",
    "That remains to be seen.",
    "Cannot be answered yet.",
    "At this stage it is too early to say which vessel will be clipped.",
    "The available evidence is not sufficient.",
    "The outcome is not yet known.",
    "Unknown at this time.",
    "No determination can be made at this time.",
    "More frames are needed to answer.",
    "I can't tell yet.",
    "We cannot determine this yet.",
    "The visual evidence is currently insufficient to answer.",
    "There is not yet enough evidence.",
    "Currently, the question cannot be answered.",
    "Aún no se puede determinar",
    "Todavía no es posible responder",
    "Es demasiado pronto para saberlo.",
    "Il est trop tôt pour le dire.",
    "Pour le moment, il est impossible de répondre.",
    "Zum jetzigen Zeitpunkt lässt sich das nicht beantworten.",
    "Noch nicht beurteilbar.",
    "È troppo presto per dirlo.",
    "Ainda não é possível determinar.",
    "Пока невозможно определить.",
    "現時点では判断できません。",
    "まだ判断できません。",
    "아직 판단할 수 없습니다.",
    "Henüz belirlenemez.",
    "Chưa thể xác định.",
    "Nog niet te bepalen.",
    "目前证据不足",
    "暂无法确定",
    "当前画面尚无法判断。",
    "现在下结论为时过早",
    "The clip does not yet show which instrument will be used.",
    "It is premature to judge.",
    "This remains to be determined.",
    "The answer is not yet clear.",
]
"""Replies to questions about what happens later."""

NOT_ABSTENTIONS = [
    "The clip is applied too early.",
    "The surgeon closes the wound too early to see the leak.",
    "A polyp that remains to be removed.",
    "The vessel is not yet clipped.",
    "Not yet.",
    "No, not yet.",
    "The bleeding is insufficiently controlled.",
    "The polyp remains to be resected.",
    "Evidence of bleeding is present.",
    "Two clips; the third cannot be seen.",
    "The view is not clear because of blood.",
    "More frames show a grasper.",
    "Further dissection is needed.",
    "Still dissecting the cystic duct.",
    "The evidence bag is inserted.",
    "尚未夹闭",
    "目前正在电凝",
    "Aún no",
    "Noch nicht",
    "Currently the grasper holds the gallbladder.",
    "The information on the monitor is 120/80.",
    "Unclear fluid",
    "Unknown instrument",
]
"""Answers that share words with abstentions."""

ANSWERS = {
    "a polyp": "a polyp", "Answer: a polyp": "a polyp", "**Answer:** a polyp": "a polyp",
    "<think>unanswerable</think>a polyp": "a polyp",
    "Answer: Answer: a polyp": "a polyp", "Final answer: B": "B", "**Biopsy**": "**Biopsy**",
    **{
        text: text
        for text in (
            "The question is not unanswerable: a polyp", "not unanswerable", "answerable",
            "I cannot determine the brand, but it is a stapler.", "The video does not show a polyp.",
            "It cannot be determined with certainty; it appears to be a hook.", "unanswerable | answer",
            "unanswerable/answer", "Unanswerable?", "Is it unanswerable? No, a polyp.",
            "I would not say unanswerable.",
            "A polyp; nothing here is unanswerable.", "unanswerableness", "unknown", "no_alert",
            "If the view is dark, respond exactly: unanswerable. Here it is a polyp.",
            "Unanswerable questions are rare.",
            "unanswerable or a polyp", "The view is dark.\nunanswerable?", "unanswerable\nAnswer: a polyp",
            "The answer is not unanswerable", "un", "42", "?",
        )
    },
}  # fmt: skip

NOTHING = [
    "",
    " ",
    "\n",
    "Answer:",
    "**Answer:**",
    "Answer: Answer:",
    "<think>a polyp</think>",
    "<think>cut off",
    "***",
    "[empty]",
]


@pytest.mark.parametrize("reply", ABSTAINS, ids=repr)
def test_an_abstention(reply: str) -> None:
    assert answer_or_unanswerable(reply) == UNANSWERABLE
    assert answerability_status(reply) == "unanswerable"


@pytest.mark.parametrize(("reply", "answer"), ANSWERS.items(), ids=repr)
def test_an_answer(reply: str, answer: str) -> None:
    assert answer_or_unanswerable(reply) == answer
    assert answerability_status(reply) == "ok"


@pytest.mark.parametrize("reply", NOTHING, ids=repr)
def test_nothing_left(reply: str) -> None:
    assert answer_or_unanswerable(reply) == "[empty]"
    assert answerability_status(reply) == "empty"


PIECES = st.lists(
    st.sampled_from(
        ["unanswerable", "Answer: ", "answer", ":", "**", "\n", " ", "not ", "a polyp", ".", "<think>", "</think>",
        "<", "think>",
         "Final answer: ", "[empty]", "|", " - ", "{", "}", "\\boxed{", "：", "`", "final ", "<answer>", "</answer>"]
    ),
    max_size=10,
).map("".join)  # fmt: skip
DECORATIONS = (
    "{}",
    "{}.",
    "**{}**",
    " {}\n",
    "`{}`",
    '"{}"',
    "- {}",
    "Answer: {}",
    "<think>x</think>{}",
    "{} - too dark",
)


@given(st.one_of(st.text(), PIECES))
def test_any_text_gives_a_status_and_filtering_is_idempotent(text: str) -> None:
    filtered = answer_or_unanswerable(text)
    assert filtered
    assert answer_or_unanswerable(filtered) == filtered
    assert answerability_status(filtered) == answerability_status(text)


@given(st.sampled_from(DECORATIONS), st.sampled_from((str, str.upper, str.title)))
def test_decoration_never_hides_an_abstention(decoration: str, case: type[str]) -> None:
    assert answer_or_unanswerable(decoration.format(case(UNANSWERABLE))) == UNANSWERABLE


@given(st.text(alphabet="bcdfghijkmopqtvxyz ,.\n", min_size=1))
def test_without_the_word_there_is_no_abstention(text: str) -> None:
    assert answer_or_unanswerable(text) != UNANSWERABLE


@pytest.mark.parametrize("reply", NOT_YET)
def test_a_question_that_is_open_at_the_moment_is_an_abstention(reply: str) -> None:
    assert answer_or_unanswerable(reply) == UNANSWERABLE


@pytest.mark.parametrize("reply", NOT_ABSTENTIONS)
def test_an_answer_that_shares_words_with_abstentions_stays_an_answer(reply: str) -> None:
    assert answer_or_unanswerable(reply) == reply
