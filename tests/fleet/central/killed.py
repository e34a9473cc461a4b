"""Runs a script, and ends its process without any cleanup at the n-th step that changes a folder.

Usage: killed.py N SCRIPT ARGUMENT..."""

import os
import runpy
import shutil
import sys

remaining = int(sys.argv[1])


def end_at_last(function):
    """Returns the function with a count of its calls, all functions together."""

    def call(*arguments, **options):
        global remaining
        remaining -= 1
        if remaining == 0:
            os._exit(137)
        return function(*arguments, **options)

    return call


for module, name in [(os, "mkdir"), (os, "link"), (os, "unlink"), (os, "fsync"), (os, "symlink"), (os, "replace"),
                     (shutil, "rmtree")]:
    setattr(module, name, end_at_last(getattr(module, name)))
sys.argv = sys.argv[2:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
