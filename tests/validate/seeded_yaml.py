"""Defects of task files, each with the code of the finding that must name it."""

from __future__ import annotations

from seeded_bench import InYaml

BASE, LEAF = "mi_cxr/_base.yaml", "mi_cxr/mi_cxr_tel_single.yaml"
GROUP, SAMPLED = "mi_cxr/groups/mi_cxr_tel.yaml", "mi_cxr/_sampled.yaml"
KVASIR, KVASIR_LEAF = "kvasir_vqa_x1/_base.yaml", "kvasir_vqa_x1/kvasir_vqa_x1_level1.yaml"
STREAM = "medstreambench/medstreambench_proactive.yaml"
ROTATED = "mi_cxr/mi_cxr_icr_circular.yaml"
STAGED = "mi_cxr/mi_cxr_stagewise_icr.yaml"


def _leaf(name: str, code: str, old: str, new: str) -> InYaml:
    return InYaml(name, code, LEAF, old, new)


def _base(name: str, code: str, old: str, new: str) -> InYaml:
    return InYaml(name, code, BASE, old, new, LEAF)


def _rotated(name: str, code: str, old: str, new: str) -> InYaml:
    return InYaml(name, code, ROTATED, old, new)


def _paraphrased(name: str, code: str, old: str, new: str) -> InYaml:
    return InYaml(name, code, "mi_cxr/mi_cxr_icr_prompts.yaml", old, new)


def _group(name: str, code: str, old: str, new: str) -> InYaml:
    return InYaml(name, code, GROUP, old, new)


def _kvasir(name: str, code: str, old: str, new: str) -> InYaml:
    return InYaml(name, code, KVASIR, old, new, KVASIR_LEAF)


TEXT = [
    _leaf("unclosed quote", "MT101", 'resolution"', "resolution"),
    _leaf("python object", "MT101", "version: 1.0", "version: !!python/name:os.system 1  # here"),
    _leaf("alias in itself", "MT101", "metadata:", "tag: &own [*own]  # here\nmetadata:"),
    _leaf("date that is none", "MT101", "version: 1.0", "version: 2025-13-45  # here"),
    _leaf("control character", "MT101", "metadata:", "metadata: \x01  # here"),
    InYaml("list of tasks", "MT102", "mi_cxr/new.yaml", "", "- task: new\n"),
    _leaf("key twice", "MT103", "metadata:", "task: mi_cxr_tel_single  # here\nmetadata:"),
    _leaf("include leads to a folder", "MT104", "_base.yaml", "../mi_cxr  # here"),
    _leaf("include of itself", "MT105", "_base.yaml", "mi_cxr_tel_single.yaml  # here"),
    _base("circle of includes", "MT105", "dataset_path: json", "include: mi_cxr_tel_single.yaml  # here"),
]

KEYS = [
    InYaml("name of a task of the harness", "MT138", "mi_cxr/mme.yaml", "", "task: mme  # here\ninclude: _base.yaml\n"),
    _group("group of another name", "MT106", "group: mi_cxr_tel", "group: mi_cxr_tell  # here"),
    _leaf("key of another harness", "MT107", "output_type:", "should_shuffle: true  # here\noutput_type:"),
    _base("misspelt key in a shared part", "MT107", "cluster_key:", "clusterkey: cluster  # here\ncluster_key:"),
    _leaf("metadata of another kind", "MT108", "  title:", "  author: me  # here\n  title:"),
    _base("cluster_key is a list", "MT109", "cluster_key: cluster", "cluster_key: [cluster]  # here"),
    _base(
        "doc_to_text is a template",
        "MT109",
        "doc_to_text: !function medtasks.benchmarks.documents.doc_to_text",
        'doc_to_text: "{{question}} {{target}}"  # here',
    ),
    _base("process_results is a text", "MT109", "process_results: !function ", "process_results: "),
    _leaf("metadata is a list", "MT109", "metadata:", "metadata: [1.0]  # here\nlmms_eval_specific_kwargs:"),
    _leaf("include is a list", "MT109", "include: _base.yaml", "include: [_base.yaml]  # here"),
    _leaf("key is a truth value", "MT109", "output_type:", "on: 1  # here\noutput_type:"),
    _leaf("no task", "MT110", "task: mi_cxr_tel_single\n", ""),
    _leaf("no metadata benchmark", "MT111", "  benchmark: mi_cxr\n", ""),
    _leaf("unknown output type", "MT112", "output_type: generate_until", "output_type: generate  # here"),
    _base("pipeline of another name", "MT112", "name: medtasks", "name: mine  # here"),
    _base(
        "two pipelines",
        "MT112",
        "metric_list:",
        "  - name: medtasks  # here\n    filter:\n      - function: "
        "!function medtasks.answers.AnswerTextFilter\nmetric_list:",
    ),
]

SETTINGS = [
    InYaml(
        "repeats without sampling",
        "MT113",
        SAMPLED,
        "  temperature: 0.7\n  do_sample: true",
        "  temperature: 0",
        "mi_cxr/mi_cxr_icr_sampled.yaml",
    ),
    InYaml(
        "sampling at temperature zero",
        "MT113",
        SAMPLED,
        "temperature: 0.7\n  do_sample: true",
        "temperature: 0\n  do_sample: true  # here",
        "mi_cxr/mi_cxr_icr_sampled.yaml",
    ),
    _base("unknown generation setting", "MT117", "max_new_tokens: 4096", "max_tokens: 64  # here"),
    _leaf("breakdown twice", "MT114", "[qtype, gold_option, null_option]", "[qtype, gold_option, qtype]  # here"),
    InYaml("group among the tasks", "MT115", "mi_cxr/new.yaml", "", "group: new  # here\ntask: [mi_cxr_icr]\n"),
    InYaml("task among the groups", "MT115", "mi_cxr/groups/new.yaml", "", "include: ../_base.yaml\ntask: new\n"),
    InYaml("ending .yml", "MT116", "mi_cxr/new.yml", "", "include: _base.yaml\ntask: new\n"),
    InYaml("unused shared part", "MT118", "mi_cxr/_new.yaml", "", "repeats: 2\n", "."),
    InYaml("two files of one name", "MT119", "med_cmr/mi_cxr_icr.yaml", "", "task: mi_cxr_icr\n", "."),
    _base("no cluster key", "MT142", "cluster_key: cluster\n", ""),
]

NAMES = [
    _base(
        "module that does not exist", "MT120", "medtasks.benchmarks.documents.doc_to_text", "no_such_lab.prompt  # here"
    ),
    _base("function without a module", "MT120", "medtasks.benchmarks.documents.doc_to_text", "doc_to_text  # here"),
    _base("function that is a constant", "MT121", "mi_cxr.process_results", "mi_cxr.NULL_OPTION  # here"),
    _base("filter with an argument", "MT107", "OptionLetterFilter", "OptionLetterFilter\n        letters: AB  # here"),
    _base("filter that is a function", "MT121", "OptionLetterFilter", "strip_thinking  # here"),
    _base(
        "filter that nobody registered",
        "MT123",
        "!function medtasks.answers.OptionLetterFilter",
        "!function lmms_eval.filters.extraction.RegexFilter  # here",
    ),
    _base("filter by an unknown name", "MT123", "!function medtasks.answers.OptionLetterFilter", "take_first  # here"),
    _kvasir("metric of another library", "MT124", "metric: bleu\n", "metric: bleu_4  # here\n"),
    _base(
        "aggregation by an unknown name",
        "MT125",
        "!function medtasks.benchmarks.aggregations.accuracy",
        "means  # here",
    ),
    _base("aggregation of no metric", "MT125", "aggregations.accuracy", "aggregations.acuracy  # here"),
    InYaml("unknown rubric", "MT126", "med_cmr/med_cmr_open_su.yaml", "[med_cmr_open,", "[med_cmr_opens,"),
    _leaf("breakdown of another benchmark", "MT127", "[qtype,", "[dimension,"),
    _group(
        "pooled metric of another benchmark",
        "MT128",
        "  version: 1.0",
        "  version: 1.0\n  pooled: [overall_table4]  # here",
    ),
    InYaml("unknown learned metric", "MT129", KVASIR_LEAF, "[bertscore,", "[bert_score,"),
    _leaf("unknown benchmark", "MT130", "benchmark: mi_cxr", "benchmark: mi_crx  # here"),
    InYaml(
        "unknown partner",
        "MT131",
        KVASIR_LEAF,
        "compare_with: kvasir_vqa_x1_transformed_level1",
        "compare_with: kvasir_vqa_x1_transformed_level9  # here",
    ),
    _group("unknown member", "MT132", "  - mi_cxr_tel_multiple", "  - mi_cxr_tel_multi  # here"),
    _group("group that holds itself", "MT133", "  - mi_cxr_tel_multiple", "  - mi_cxr_tel  # here"),
    InYaml("groups that hold each other", "MT133", GROUP, "  - mi_cxr_tel_multiple", "  - mi_cxr  # here", "mi_cxr"),
    _kvasir("aggregation of another metric", "MT134", "aggregations.rouge2", "aggregations.rouge1  # here"),
    _base("direction turned round", "MT135", "higher_is_better: true", "higher_is_better: false  # here"),
    _group("member of another benchmark", "MT136", "  - mi_cxr_tel_multiple", "  - med_cmr_mcq_cr  # here"),
    _leaf("rows of another benchmark", "MT137", "mi_cxr.tel_single", "med_cmr.mcq_cr  # here"),
    _base("missing template", "MT201", "mi_cxr/mcq.j2", "mi_cxr/mcqs.j2  # here"),
    InYaml("stage 2 alone", "MT203", STAGED, "  stage1_template: mi_cxr/stage1_icr.j2\n", "", STAGED),
    InYaml(
        "stage 1 that shows the options",
        "MT204",
        STAGED,
        "stage1_template: mi_cxr/stage1_icr.j2",
        "stage1_template: mi_cxr/mcq.j2",
        STAGED,
    ),
    InYaml(
        "stages with a system prompt",
        "MT113",
        STAGED,
        "  stage1_template:",
        "  system_template: kvasir_vqa_x1/system.j2\n  stage1_template:",
        STAGED,
    ),
    InYaml(
        "system prompt with the question",
        "MT204",
        "kvasir_vqa_x1/_system.yaml",
        "system_template: kvasir_vqa_x1/system.j2",
        "system_template: kvasir_vqa_x1/answer.j2",
        "kvasir_vqa_x1/kvasir_vqa_x1_level1_system.yaml",
    ),
]

OPTIONS = "{order: circular}"
ORDERS = [
    _rotated("one rotation", "MT109", OPTIONS, "{order: circular, rotations: 1}  # here"),
    _rotated("plain rows", "MT113", "benchmarks.variants.mi_cxr_icr_circular", "benchmarks.mi_cxr.icr  # here"),
    _rotated(
        "rows of another rotated task", "MT113", "mi_cxr_icr_circular\nm", "mi_cxr_tel_single_circular  # here\nm"
    ),
    _rotated("rotations of a group", "MT143", "compare_with: mi_cxr_icr", "compare_with: mi_cxr  # here"),
    _rotated("rotations of rotations", "MT143", "compare_with: mi_cxr_icr", "compare_with: mi_cxr_gts_multi_circular"),
    _rotated("repeated rotations", "MT113", "metadata:", "repeats: 2  # here\nmetadata:"),
    _group("rotations in a group", "MT113", "metadata:", "metadata:\n  options: {order: circular}"),
]

PROMPTS = "[mi_cxr/mcq.j2, mi_cxr/mcq_2.j2, mi_cxr/mcq_3.j2, mi_cxr/mcq_4.j2]"
PARAPHRASES = [
    _paraphrased("too many prompts", "MT109", PROMPTS, f"[{', '.join(f'mi_cxr/{n}.j2' for n in range(11))}]  # here"),
    _paraphrased("another prompt first", "MT113", PROMPTS, "[mi_cxr/mcq_2.j2, mi_cxr/mcq.j2]"),
    _paraphrased("missing prompt", "MT201", PROMPTS, "[mi_cxr/mcq.j2, mi_cxr/mcq_99.j2]  # here"),
    _paraphrased("plain rows with prompts", "MT113", "benchmarks.variants.mi_cxr_icr_prompts", "mi_cxr.icr  # here"),
    _paraphrased("prompts of a group", "MT143", "compare_with: mi_cxr_icr", "compare_with: mi_cxr  # here"),
    _paraphrased("prompts of prompts", "MT143", "compare_with: mi_cxr_icr", "compare_with: mi_cxr_gts_multi_prompts"),
    _paraphrased("prompts of another template", "MT143", "compare_with: mi_cxr_icr", "compare_with: mi_cxr_icr_cot"),
    _paraphrased("repeated prompts", "MT113", "metadata:", "repeats: 2  # here\nmetadata:"),
    _paraphrased("prompts and options", "MT113", "metadata:", "metadata:\n  options: {order: circular}"),
    _group("prompts in a group", "MT113", "metadata:", f"metadata:\n  prompts: {PROMPTS}"),
]

CONFIDENCE = "{of: option}"
CONFIDENCES = [
    _leaf("confidence by a metric of another task", "MT144", CONFIDENCE, "{of: option, correct: rougeL}"),
    _leaf("confidence of repeated answers", "MT113", "metadata:", "repeats: 2  # here\nmetadata:"),
    InYaml("confidence by a corpus metric", "MT144", KVASIR_LEAF, "correct: exact_match}", "correct: bleu}  # here"),
    _group("confidence in a group", "MT113", "metadata:", "metadata:\n  confidence: {of: option}"),
]

TIMING = "{law: tolerance, scale: 1, default_tolerance: half-smallest-gap}"
TIMINGS = [
    InYaml("default tolerance is another text", "MT109", STREAM, TIMING, "{default_tolerance: half}  # here"),
    _group("timing in a group", "MT113", "metadata:", "metadata:\n  timing: {scale: 2}"),
]


def _error(name: str, code: str, entry: str) -> InYaml:
    return _leaf(name, code, CONFIDENCE, f"{CONFIDENCE}\n  errors: [{entry}]  # here")


MISSED = "name: missed, label: Missed"
NULL = "None of these intervals"
ERRORS = [
    _error("answer without quotes", "MT109", f"{{{MISSED}, gold: T1-T2, answer: no}}"),
    _error("error with two answers", "MT113", f"{{{MISSED}, gold: T1-T2, answer: T2-T3, answer_other_than: T1-T2}}"),
    _error("harmful correct answer", "MT113", f"{{{MISSED}, gold: a, answer: a, harms: true, higher_is_better: true}}"),
    _error("error twice", "MT114", ", ".join([f"{{{MISSED}, gold: T1-T2, answer: T2-T3}}"] * 2)),
    _error(
        "error called like a metric",
        "MT145",
        f"{{name: rougeL, label: Missed, gold_other_than: {NULL}, answer: {NULL}}}",
    ),
    _rotated(
        "errors of rotated options", "MT113", "  options:", f"  errors: [{{{MISSED}, gold: a, answer: b}}]\n  options:"
    ),
    _group("errors in a group", "MT113", "metadata:", f"metadata:\n  errors: [{{{MISSED}, gold: a, answer: b}}]"),
]

YAML_DEFECTS = [*TEXT, *KEYS, *SETTINGS, *NAMES, *ORDERS, *PARAPHRASES, *CONFIDENCES, *TIMINGS, *ERRORS]
