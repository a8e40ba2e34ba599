"""The prompt of a new benchmark folder, in the language of its questions where we have it."""

from __future__ import annotations

from collections.abc import Mapping

from medtasks.catalog.benchmark_file import AnswerKind

_QUESTION = """\
{% if instructions %}
{{ instructions }}

{% endif %}
{{ question }}

"""
_OPTIONS = """\
{% for letter in choices | sort -%}
{{ letter }}. {{ choices[letter] }}
{% endfor %}

"""
_FORMS: Mapping[str, Mapping[AnswerKind, str]] = {
    "en": {
        "options": "Exactly one option is correct. Reply with its letter alone.",
        "yes/no": "Reply with one word: yes or no.",
        "closed": "Reply with one of these answers, and nothing else:",
        "open": "Answer briefly.",
    },
    "de": {
        "options": "Genau eine Option ist richtig. Antworte nur mit ihrem Buchstaben.",
        "yes/no": "Antworte mit einem Wort: yes (ja) oder no (nein).",
        "closed": "Antworte mit genau einer dieser Antworten und nichts anderem:",
        "open": "Antworte kurz.",
    },
    "fr": {
        "options": "Une seule option est correcte. Répondez uniquement par sa lettre.",
        "yes/no": "Répondez par un seul mot : yes (oui) ou no (non).",
        "closed": "Répondez par une seule de ces réponses, sans rien ajouter :",
        "open": "Répondez brièvement.",
    },
    "es": {
        "options": "Solo una opción es correcta. Responda únicamente con su letra.",
        "yes/no": "Responda con una sola palabra: yes (sí) o no (no).",
        "closed": "Responda con una de estas respuestas y nada más:",
        "open": "Responda brevemente.",
    },
    "it": {
        "options": "Una sola opzione è corretta. Rispondi soltanto con la sua lettera.",
        "yes/no": "Rispondi con una sola parola: yes (sì) o no (no).",
        "closed": "Rispondi con una di queste risposte e nient'altro:",
        "open": "Rispondi brevemente.",
    },
    "pt": {
        "options": "Apenas uma opção está correta. Responda somente com a letra.",
        "yes/no": "Responda com uma só palavra: yes (sim) ou no (não).",
        "closed": "Responda com uma destas respostas e nada mais:",
        "open": "Responda brevemente.",
    },
    "zh": {
        "options": "只有一个选项是正确的。请只回答该选项的字母。",
        "yes/no": "请只用一个词回答：yes（是）或 no（否）。",
        "closed": "请只回答以下答案之一，不要添加其他内容：",
        "open": "请简要回答。",
    },
}
"""What form an answer has, by language and kind of answers; English for other languages."""
_LABELS = ' {{ options | join(", ") }}'


def prompt_template(kind: AnswerKind, language: str, *, has_instructions: bool) -> str:
    """The text of ``question.j2``: the question, its options, and the form of an answer."""
    form = _FORMS.get(language, _FORMS["en"])[kind]
    question = _QUESTION if has_instructions else "{{ question }}\n\n"
    options = _OPTIONS if kind == "options" else ""
    labels = _LABELS if kind == "closed" else ""
    return f"{question}{options}{form}{labels}\n"
