"""Every other row of a table of numbers: prepare.py RAW CLEAN"""
import sys

raw, clean = sys.argv[1:]
with open(raw) as rows, open(clean, "w") as out:
    out.writelines(row for row in rows if int(row) % 2 == 0)
