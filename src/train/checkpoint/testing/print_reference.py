#!/usr/bin/env python3
"""Prints the tensors of a file as the PyPI package `safetensors` reads them: name, type, shape and
bytes in hexadecimal, in the order of the file. Run by safetensors_test.cc where there is one."""

import sys

from safetensors import deserialize

with open(sys.argv[1], "rb") as file:
    found = deserialize(file.read())
# In the order of our writer, which is the order of the bytes; the package gives any.
order = {}
with open(sys.argv[1], "rb") as file:
    import json
    length = int.from_bytes(file.read(8), "little")
    for at, name in enumerate(n for n in json.loads(file.read(length)) if n != "__metadata__"):
        order[name] = at
for name, tensor in sorted(found, key=lambda pair: order[pair[0]]):
    shape = ",".join(str(extent) for extent in tensor["shape"])
    print(name, tensor["dtype"], shape, bytes(tensor["data"]).hex())
