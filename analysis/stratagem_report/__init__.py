"""Makes tables, figures and a report from the files of stratagem runs.

`trace` is the only reader of trace files, `study` reads the files around them, and `measures` turns a run into numbers.
Everything else works on the table that `study.load` makes.
"""
