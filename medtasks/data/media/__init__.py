"""Pictures and videos: strict decoding, bounded caches, and an index that verifies every file
once.
"""
