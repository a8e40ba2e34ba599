"""Model back-ends that medtasks registers with lmms-eval.

``vlm`` runs any transformers image-text-to-text checkpoint, ``vllm`` the same through vLLM, ``baseline`` answers from
the documents themselves, ``replay`` answers from a file of existing predictions. This package and
``medtasks.metrics.learned`` are the only places that import torch or transformers, so nothing is imported here.
"""
