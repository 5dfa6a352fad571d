"""Speed and memory against the bars. `python -m tests.bench` measures, prints and keeps all of it.

One module per group of rows; each has a `MEASUREMENTS` of `measure.Measurement`. `report` knows
how a row is shown. Nothing here is a test: a figure that misses its bar is a figure.
"""
