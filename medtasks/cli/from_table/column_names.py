"""The names that people give to columns, by what the columns contain."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from medtasks.catalog.benchmark_file import LETTERS

NAMES: Mapping[str, Sequence[str]] = {
    "question": (
        *("question", "questions", "questiontext", "query", "prompt", "q", "stem"),
        *("frage", "pregunta", "pergunta", "domanda", "vraag", "问题", "質問"),
    ),
    "image": (
        *("image", "images", "imagepath", "imagepaths", "imagefile", "imagefilename", "imagename"),
        *("imageurl", "imagelink", "img", "imgs", "imgpath", "imgfile", "imgname", "imgurl"),
        *("picture", "pictures", "picturepath", "pic", "photo", "figure", "figurepath", "fig"),
        *("scan", "file", "filename", "filepath", "path", "url"),
        *("bild", "imagen", "imagem", "immagine", "图片", "图像", "画像"),
    ),
    "answer": (
        *("answer", "answers", "answertext", "answerkey", "answerlabel", "answerletter"),
        *("answeridx", "answerindex", "correct", "correctanswer", "correctoption", "correctchoice"),
        *("cop", "gold", "goldanswer", "groundtruth", "gt", "gtanswer", "key", "label", "labels"),
        *("reference", "referenceanswer", "solution", "target"),
        *("antwort", "respuesta", "resposta", "risposta", "reponse", "antwoord", "答案", "回答"),
        *("losung", "loesung", "musterlosung", "richtigeantwort", "solucion", "soluzione"),
        *("respuestacorrecta", "bonnereponse", "rispostacorretta", "正确答案"),
    ),
    "label": (
        *("class", "classname", "classlabel", "diagnosis", "dx", "finding"),
        *("klasse", "diagnose", "befund", "classe", "diagnostic", "diagnostico", "诊断"),
    ),
    "options": (
        *("options", "choices", "answerchoices", "answeroptions", "alternatives", "candidates"),
        *("optionen", "antworten", "choix", "opciones", "opcoes", "opzioni", "选项"),
    ),
    "id": (
        *("id", "questionid", "qid", "sampleid", "itemid", "uid", "rowid", "index"),
        *("identifiant", "kennung", "fragenid", "identificador", "编号", "序号"),
    ),
    "cluster": (
        *("cluster", "patient", "patientid", "patientno", "patientnumber", "pid", "subject"),
        *("subjectid", "person", "personid", "participant", "participantid", "mrn"),
        *("case", "caseid", "study", "studyid", "exam", "examid", "examination", "accession"),
        *("accessionnumber", "series", "seriesid", "video", "videoid"),
        *("patientin", "patientenid", "patientennummer", "idpatient", "paciente", "paziente"),
        *("patiente", "病人", "患者", "fall", "fallid", "fallnummer", "cas", "caso", "病例"),
        *("studie", "studienid", "untersuchung", "etude", "examen", "estudio", "检查"),
    ),
    "instructions": (
        *("hint", "instruction", "instructions", "context", "background", "history", "vignette"),
        *("clinicalhistory", "clinicalcontext", "casedescription", "indication"),
    ),
}
"""Names of columns by role, as `normalised` has them. The first one is preferred to all others.
For clusters and ids, each is preferred to those that follow: patients contain studies.
"label" are further names of answers, for tables in which no column is named like answers.
"""

_WORD = re.compile(r"[^\W\d_]+")
_STEMS_OF_OPTIONS = frozenset(
    {
        *("option", "choice", "opt", "op", "answer", "ans", "alternative"),
        *("antwort", "choix", "reponse", "proposition", "opcion", "opcao", "opzione", "选项"),
    }
)
_LETTERED = re.compile(rf"(?P<stem>{'|'.join(sorted(_STEMS_OF_OPTIONS))}|)(?P<letter>[a-k])")
_ELEVENTH = "K"
"""The letter of an option that is one too many."""
_NUMBERED = re.compile(r"(?P<stem>\D+)(?P<number>[0-9]{1,2})")


def normalised(name: str) -> str:
    """The letters and digits of a name in lower case, without accents.

    >>> normalised("Image Path"), normalised("réponse"), normalised("Option-A")
    ('imagepath', 'reponse', 'optiona')
    """
    decomposed = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in decomposed if letter.isalnum())


def named_like(role: str, columns: Iterable[str]) -> list[str]:
    """The columns whose names are usual for a role, in the order of `NAMES`."""
    names = NAMES[role]
    matching = [column for column in columns if normalised(column) in names]
    return sorted(matching, key=lambda column: names.index(normalised(column)))


def with_word_of(role: str, columns: Iterable[str]) -> list[str]:
    """The columns with a usual name of a role among their words, such as *Correct answer (letter)*.

    This is too little for a guess: *answer type* has one, too.
    """
    names = set(NAMES[role])
    return [column for column in columns if names & set(map(normalised, _WORD.findall(column)))]


def option_families(columns: Iterable[str]) -> list[dict[str, str]]:
    """The families of columns that contain one option each, by the letters of the options.

    A family is ``A``, ``B``, … or ``option_a``, ``option_b``, … or ``choice 1``, ``choice 2``, ….
    One with more options than a question may have has 11.
    """
    families: dict[tuple[str, bool], dict[str, str]] = defaultdict(dict)
    for column in columns:
        name = normalised(column)
        lettered = _LETTERED.fullmatch(name)
        if lettered is not None:
            families[lettered["stem"], True][lettered["letter"].upper()] = column
        numbered = _NUMBERED.fullmatch(name)
        if numbered is not None and numbered["stem"] in _STEMS_OF_OPTIONS:
            families[numbered["stem"], False][numbered["number"]] = column
    complete: list[dict[str, str]] = []
    letters = [*LETTERS, _ELEVENTH]
    for (_, has_letters), family in families.items():
        names = family if has_letters else _with_letters(family)
        if _ELEVENTH in names and len(names) < len(letters):
            del names[_ELEVENTH]  # the name of another column
        if len(names) > 1 and sorted(names) == letters[: len(names)]:
            complete.append(dict(sorted(names.items())))
    return complete


def _with_letters(numbered: Mapping[str, str]) -> dict[str, str]:
    """Columns by letter in place of a number; none unless the numbers run from 0 or 1."""
    numbers = sorted(map(int, numbered))
    if numbers[0] > 1 or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return {}
    by_number = {int(number): column for number, column in numbered.items()}
    return {
        letter: by_number[number]
        for letter, number in zip([*LETTERS, _ELEVENTH], numbers, strict=False)
    }


def picture_families(columns: Iterable[str]) -> list[tuple[str, ...]]:
    """The columns of pictures that differ in a number alone, such as ``image_1``, ``image_2``."""
    families: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for column in columns:
        numbered = _NUMBERED.fullmatch(normalised(column))
        if numbered is not None and numbered["stem"] in NAMES["image"]:
            families[numbered["stem"]].append((int(numbered["number"]), column))
    return [tuple(column for _, column in sorted(family)) for family in families.values()]
