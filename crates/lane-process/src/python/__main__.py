"""Runs Python code as an extension: `python3 -S -B <this folder> tool|channel|class TARGET`, in the extension's folder."""

from holdfast_worker.main import main

main()
