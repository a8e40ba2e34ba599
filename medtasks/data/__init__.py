"""From release files to prepared data: typed records, verified media, a manifest with a
fingerprint.
"""
