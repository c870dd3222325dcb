"""Reads what runs of stratagem left behind and makes tables, figures and a report of it.

`trace` is the only reader of trace files, `study` knows the files around them, `measures` turns a run into
numbers; everything else works on the table that `study.load` makes.
"""
