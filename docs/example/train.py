"""A "model", the mean of its data: train.py --data FILE --out MODEL"""
import argparse

arguments = argparse.ArgumentParser()
arguments.add_argument("--data")
arguments.add_argument("--out")
options = arguments.parse_args()
with open(options.data) as rows:
    values = [int(row) for row in rows]
with open(options.out, "w") as model:
    print(sum(values) / len(values), file=model)
