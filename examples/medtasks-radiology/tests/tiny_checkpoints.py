"""Checkpoints of a few hundred kilobytes in the formats that RadEval's classes load.

CheXbert is trained for a few seconds on sentences about its conditions, so that it sees negations;
the others have random weights.
"""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

from medtasks_radiology.chexbert import CONDITIONS
from medtasks_radiology.probes import read_probes

PHRASES = {
    "Cardiomegaly": ("the heart is {not}enlarged", "there is {no}cardiomegaly", "{no}cardiomegaly"),
    "Edema": ("there is {no}pulmonary edema", "{no}edema", "pulmonary edema is {present}"),
    "Consolidation": ("there is {no}consolidation in the {side} lower lobe", "{no}consolidation"),
    "Pneumothorax": ("there is {no}{side} apical pneumothorax", "{no}pneumothorax"),
    "Pleural Effusion": (
        "there is {no}{size}{side} pleural effusion",
        "a {size}pleural effusion is {present} on the {side}",
    ),
    "Fracture": ("there is {no}rib fracture", "{no}fracture"),
}
"""How a condition is stated or, with the words of a negation, denied."""
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
BATCH = 64
POSITIONS = 512
"""The longest text that CheXbert reads."""


def tiny_chexbert(folder: Path, *, steps: int = 400) -> Path:
    """``chexbert.pth`` with the names of the authors' weights, its BERT's config.json and
    vocab.txt.
    """
    import torch
    from transformers import BertConfig, BertModel

    folder.mkdir(parents=True)
    sentences, labels = _labelled_sentences()
    words = sorted({word for sentence in sentences for word in _words(sentence)} | _probe_words())
    (folder / "vocab.txt").write_text("\n".join((*SPECIAL, *words)) + "\n", encoding="utf-8")
    config = BertConfig(
        vocab_size=len(SPECIAL) + len(words),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=POSITIONS,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    config.save_pretrained(folder)
    torch.manual_seed(0)
    model = torch.nn.Module()
    model.bert = BertModel(config)
    heads = [torch.nn.Linear(32, 4) for _ in CONDITIONS[:-1]]
    model.linear_heads = torch.nn.ModuleList([*heads, torch.nn.Linear(32, 2)])
    _train(model, _token_ids(sentences, words), torch.tensor(labels), steps)
    state = {f"module.{name}": weight for name, weight in model.state_dict().items()}
    torch.save({"model_state_dict": state}, folder / "chexbert.pth")
    return folder


def _labelled_sentences() -> tuple[list[str], list[list[int]]]:
    """Sentences, alone and in pairs, and the class of each condition: 0 blank, 1 present, 2 absent;
    for no finding, 1 if there is none.
    """
    stated: list[tuple[str, str, int]] = []
    for condition, phrases in PHRASES.items():
        for phrase, side, size, label in itertools.product(
            phrases, ("left", "right"), ("", "small "), (1, 2)
        ):
            denied = label == 2
            filled = phrase.format(
                no="no " if denied else "a " if phrase.startswith("there is {no}") else "",
                side=side,
                size=size,
                present="absent" if denied else "present",
                **{"not": "not " if denied else ""},
            )
            stated.append((f"{filled} .", condition, label))
    stated = list(dict.fromkeys(stated))
    combined = [[one] for one in stated]
    for (number, first), step in itertools.product(enumerate(stated), (7, 11, 17)):
        second = stated[(number + step) % len(stated)]
        if first[1] != second[1]:
            combined.append([first, second])
    sentences, labels = [], []
    for parts in combined:
        row = [0] * len(CONDITIONS)
        for _, condition, label in parts:
            row[CONDITIONS.index(condition)] = label
        row[-1] = int(1 not in row)
        sentences.append(" ".join(sentence for sentence, *_ in parts))
        labels.append(row)
    return sentences, labels


def _probe_words() -> set[str]:
    words: set[str] = set()
    for probe in read_probes():
        for report in (*probe.reports, *probe.changed):
            words.update(_words(report))
    return words


def _words(text: str) -> list[str]:
    """As BERT's tokenizer splits them: in lower case, punctuation apart."""
    return re.findall(r"\w+|[^\w\s]", text.lower())


def _token_ids(sentences: list[str], words: list[str]) -> Any:
    """The padded token ids of each sentence, between [CLS] and [SEP]."""
    import torch

    place = {word: number for number, word in enumerate((*SPECIAL, *words))}
    rows = []
    for sentence in sentences:
        inner = [place[word] for word in _words(sentence)]
        rows.append(torch.tensor([place["[CLS]"], *inner, place["[SEP]"]]))
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


def _train(model: Any, token_ids: Any, labels: Any, steps: int) -> None:
    """Train all heads together."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # more only wait for each other: the model is too small
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    shuffled = torch.Generator().manual_seed(0)
    for _ in range(steps):
        chosen = torch.randint(len(labels), (BATCH,), generator=shuffled)
        ids = token_ids[chosen]
        mask = (ids != 0).float()
        first = model.bert(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0]
        losses = []
        for number, head in enumerate(model.linear_heads):
            losses.append(torch.nn.functional.cross_entropy(head(first), labels[chosen, number]))
        loss = torch.stack(losses).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.set_num_threads(threads)


def tiny_radgraph(folder: Path) -> Path:
    """The unpacked archive of RadGraph-XL: config.json, vocabulary/ and weights.th, with random
    weights; its encoder's tokenizer and config.json are next to it.
    """
    import torch

    from medtasks_radiology.radeval_metric import printing_to_standard_error, radeval_module

    encoder = folder.parent / "encoder"
    _tiny_bert(encoder)
    vocabulary = folder / "vocabulary"
    vocabulary.mkdir(parents=True)
    labels = {
        "ner_labels": (
            "",
            "Observation::definitely present",
            "Observation::definitely absent",
            "Anatomy::definitely present",
        ),
        "relation_labels": ("", "modify", "located_at", "suggestive_of"),
    }
    for kind, names in labels.items():
        path = vocabulary / f"radgraph-xl__{kind}.txt"
        path.write_text("\n".join(names) + "\n", encoding="utf-8")
    (vocabulary / "non_padded_namespaces.txt").write_text("*labels\n*tags\n", encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(_radgraph_config(str(encoder))))

    library = radeval_module("metrics.radgraph._vendor.core")
    torch.manual_seed(0)
    with printing_to_standard_error():
        model = _random_dygie(library, folder)
    torch.save(model.state_dict(), folder / "weights.th")
    return folder


def _radgraph_config(encoder: str) -> dict[str, Any]:
    """The parts of DyGIE++'s settings that RadGraph reads."""
    bert = {"type": "pretrained_transformer_mismatched", "model_name": encoder, "max_length": 512}
    return {
        "dataset_reader": {
            "type": "dygie",
            "max_span_width": 4,
            "token_indexers": {"bert": bert},
        },
        "model": {
            "type": "dygie",
            "embedder": {"token_embedders": {"bert": bert}},
            "initializer": {},
            "module_initializer": {},
            "modules": {
                "ner": {},
                "relation": {"spans_per_word": 0.5},
                "coref": {"spans_per_word": 0.3, "max_antecedents": 10, "coref_prop": 0},
                "events": {
                    "trigger_spans_per_word": 0.3,
                    "argument_spans_per_word": 0.8,
                    "loss_weights": {"trigger": 0.2, "arguments": 1.0},
                },
            },
            "feature_size": 8,
            "max_span_width": 4,
            "target_task": "relation",
            "feedforward_params": {"num_layers": 1, "hidden_dims": 16, "dropout": 0.0},
            "loss_weights": {"ner": 0.2, "relation": 1.0, "coref": 0.0, "events": 0.0},
        },
    }


def _random_dygie(library: Any, folder: Path) -> Any:
    """The model that RadEval builds from the settings, before it reads the weights."""
    config = library.DotMap(json.loads((folder / "config.json").read_text()))
    vocabulary = library.Vocabulary.from_files(str(folder / "vocabulary"))
    bert = config.model.embedder.token_embedders.bert
    embedder = library.text_field_embedders.BasicTextFieldEmbedder(
        {
            "bert": library.token_embedders.PretrainedTransformerMismatchedEmbedder(
                model_name=bert.model_name, max_length=bert.max_length
            )
        }
    )
    settings = config.model
    for name in ("type", "embedder", "initializer", "module_initializer"):
        del settings[name]
    return library.dygie.DyGIE(vocab=vocabulary, embedder=embedder, **settings)


def tiny_ratescore(entities: Path, encoder: Path) -> None:
    """A token classifier with RaTE-NER's types, and an encoder, both with random weights."""
    import torch
    from transformers import BertForTokenClassification, BertModel

    types = ("ABNORMALITY", "ANATOMY", "DISEASE", "NON-ABNORMALITY", "NON-DISEASE")
    labels = ["O", *(f"{part}-{kind}" for kind in types for part in ("B", "I"))]
    torch.manual_seed(0)
    config = _tiny_bert(entities)
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: number for number, label in enumerate(labels)}
    BertForTokenClassification(config).save_pretrained(entities)
    BertModel(_tiny_bert(encoder)).save_pretrained(encoder)


def tiny_green(folder: Path) -> Path:
    """A Llama with random weights: its answers are in no form."""
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder.mkdir(parents=True)
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(
        sorted(_probe_words()),
        vocab_size=400,
        special_tokens=["<unk>", "<s>", "</s>"],
        show_progress=False,
    )
    trained.save(str(folder / "tokenizer.json"))
    PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"),
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=400,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=4096,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def _tiny_bert(folder: Path) -> Any:
    """The settings of a BERT whose vocabulary is the words of the probes, saved with its
    tokenizer.
    """
    from transformers import BertConfig, BertTokenizer

    folder.mkdir(parents=True)
    words = sorted(_probe_words())
    (folder / "vocab.txt").write_text("\n".join((*SPECIAL, *words)) + "\n", encoding="utf-8")
    BertTokenizer.from_pretrained(str(folder)).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(SPECIAL) + len(words),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        initializer_range=0.5,
    )
    config.save_pretrained(folder)
    return config
