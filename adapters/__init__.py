"""Model back-ends that medtasks registers with lmms-eval. This package and
``medtasks.metrics.learned`` are the only places that import torch or transformers, so nothing is
imported here.
"""
