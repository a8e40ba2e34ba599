"""Defects of templates, each with the code of the finding that must name it."""

from __future__ import annotations

from seeded_bench import ALL, InTemplate

OPTIONS, MCQ, OPEN = "mi_cxr/_options.j2", "mi_cxr/mcq.j2", "med_cmr/open.j2"
PARAPHRASE = "mi_cxr/mcq_2.j2"
KVASIR, WINDOW = "kvasir_vqa_x1/answer.j2", "medstreambench/window.j2"


def _kvasir(name: str, code: str, old: str, new: str) -> InTemplate:
    return InTemplate(name, code, KVASIR, old, new, "kvasir_vqa_x1_level1")


def _mcq(name: str, code: str, old: str, new: str, file: str = MCQ) -> InTemplate:
    return InTemplate(name, code, file, old, new, "mi_cxr_tel_single")


def _open(name: str, code: str, old: str, new: str) -> InTemplate:
    return InTemplate(name, code, OPEN, old, new, "med_cmr_open_su")


TEMPLATE_DEFECTS = [
    _kvasir("unclosed variable", "MT202", "{{ question }}", "{{ question  # here"),
    _kvasir("unknown filter", "MT202", "{{ question }}", "{{ question | shout }}  # here"),
    _kvasir("unknown test", "MT202", "{{ question }}", "{% if question is medical %}{{ question }}{% endif %}# here"),
    _mcq("unclosed loop in an included part", "MT202", "{% endfor %}", "", OPTIONS),
    _kvasir("misspelt variable", "MT203", "{{ question }}", "{{ qestion }} {{ question }}# here"),
    _mcq(
        "misspelt variable in an included part", "MT203", "{{ question }}", "{{ query }} {{ question }}# here", OPTIONS
    ),
    InTemplate(
        "document itself",
        "MT203",
        WINDOW,
        "{{ question }}",
        "{{ question }} {{ doc.target }}# here",
        "medstreambench_present",
    ),
    _kvasir("target", "MT204", "{{ question }}", "{{ question }} {{ target }}# here"),
    _kvasir(
        "hidden field behind a condition",
        "MT204",
        "{{ question }}",
        "{% if complexity > 1 %}{{ target }}{% endif %}{{ question }}# here",
    ),
    _mcq("target of a multiple choice", "MT204", "Exactly one", "{{ choices[target] }}# here\nExactly one"),
    _mcq("missing included part", "MT201", "_timeline.j2", "_timelines.j2", MCQ),
    _mcq("included part outside", "MT201", "mi_cxr/_timeline.j2", "../../../etc/passwd"),
    _kvasir("no variable", "MT216", "{{ question }}", "what is shown?"),
    _mcq("no options", "MT214", '{% include "mi_cxr/_options.j2" %}', "{{ question }}"),
    _kvasir("division by zero", "MT208", "{{ question }}", "{{ question }} {{ 1 / 0 }}"),
    _kvasir(
        "attribute outside the sandbox",
        "MT208",
        "{{ question }}",
        "{{ question.__class__.__mro__[1].__subclasses__() }}",
    ),
    _kvasir("endless range", "MT208", "{{ question }}", "{% for n in range(10 ** 9) %}{{ question }}{% endfor %}"),
    _mcq("option that is not there", "MT208", "{{ choices[letter] }}", "{{ choices[letter] }}{{ choices.F }}", OPTIONS),
    _kvasir(
        "answer written out as an example",
        "MT209",
        "{{ question }}",
        "{{ question }} For example: The polyp type is pedunculated.",
    ),
    _open(
        "reference answer written out",
        "MT209",
        "{{ question }}",
        "{{ question }} (The calcification lies straight below the cyst.)",
    ),
    _mcq(
        "template that includes itself",
        "MT208",
        '{% include "mi_cxr/_timeline.j2" %}',
        '{% include "mi_cxr/mcq.j2" %}',
    ),
    _mcq("computed name", "MT202", '"mi_cxr/_timeline.j2"', 'question ~ ".j2"'),
    _kvasir("empty prompt", "MT212", ALL, "{% if not question %}{{ question }}{% endif %}"),
    _mcq("visible field that no document has", "MT208", "Exactly one", "{{ demonstration }}\nExactly one"),
    _mcq("options cut", "MT214", "{{ choices[letter] }}", "{{ choices[letter][:4] }}", OPTIONS),
    InTemplate(
        "paraphrase that is none", "MT220", PARAPHRASE, ALL, '{% include "mi_cxr/mcq.j2" %}', "mi_cxr_icr_prompts"
    ),
    InTemplate(
        "paraphrase with another option list",
        "MT214",
        PARAPHRASE,
        '{% include "mi_cxr/_options.j2" %}',
        '{{ question }} {{ choices["A"] }}',
        "mi_cxr_icr_prompts",
    ),
    InTemplate(
        "paraphrase with the target", "MT204", PARAPHRASE, "Answer the", "{{ target }}# here", "mi_cxr_icr_prompts"
    ),
    _kvasir("question cut", "MT216", "{{ question }}", "{{ question[:10] }}"),
]
