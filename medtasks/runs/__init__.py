"""Result directories: complete samples, scores with intervals, and the manifest needed to repeat a
run.
"""
