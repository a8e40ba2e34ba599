"""Texts for property tests: answers as models write them, and the odd ones that break
tokenizers.
"""

from __future__ import annotations

from hypothesis import strategies as st

WORDS = [
    "the", "a", "polyp", "polyps", "is", "located", "in", "lower-left", "area", "5mm", "3.5", "two,", "There's",
    "Barrett's", "red.", ";", "(IIa+c)", "-", "&", "'no'",
]  # fmt: skip

answers = st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)
odd = st.one_of(
    st.text(max_size=25),
    st.text(alphabet="ab .,-'\"\n\t&;<>`$%0é漢🩺\u00a0\u2028", max_size=25),
    st.sampled_from(
        [
            "",
            " ",
            "\n",
            ".",
            "abc-\n",
            "a-\n b",
            "&quot;x&amp;",
            "<skipped>",
            "can't cannot gonna",
            "\ud800",
        ]
    ),
)
texts = st.one_of(answers, odd)

_fragments = st.sampled_from(
    ["polyp", "IIa", "5", "3.5", "5-mm", "lower-left", "cannot", "re-gonna-x", "e.g.", "don't", "A"]
)
_marks = st.sampled_from(["", "", "", ",", ";", ":", ".", "..", ",.", "-", "--", "%", "'"])
_gaps = st.sampled_from([" ", " ", " ", " ", " ", "", "  ", "\n"])
_parts = st.lists(st.tuples(_fragments, _marks, _gaps), max_size=6)
almost_plain = _parts.map(lambda parts: "".join(map("".join, parts)).removesuffix(" "))
"""Texts on both sides of what a tokenizer may treat as plain."""
