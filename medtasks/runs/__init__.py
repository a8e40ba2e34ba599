"""The result directory: replies, samples, manifest and signature."""
