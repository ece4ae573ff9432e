"""Prints "PART NAME DTYPE SHAPE SHA256" for every tensor of a checkpoint, from its manifest and the
bytes of its files alone: an oracle that shares no code with the reader under test."""
import hashlib
import json
import os
import struct
import sys

SIZES = {"F32": 4, "BF16": 2, "F16": 2, "U16": 2, "I32": 4, "I64": 8, "F8_E4M3": 1, "U8": 1}


def load(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
            for name, entry in header.items()}


def tensors(folder):
    manifest = json.load(open(os.path.join(folder, "manifest.json")))
    files = {file["name"]: load(os.path.join(folder, file["name"]))
             for file in manifest["files"] if file["name"].endswith(".safetensors")}
    if "parts" not in manifest:
        for file, entries in files.items():
            for name, (dtype, shape, data) in entries.items():
                yield file.split("-")[0].removesuffix(".safetensors"), name, dtype, shape, data
        return
    for part in manifest["parts"]:
        for tensor in part["tensors"]:
            total = 1
            for extent in tensor["shape"]:
                total *= extent
            size = SIZES[tensor["dtype"]]
            data = bytearray(total * size)
            for piece in tensor["pieces"]:
                first, count = piece["first"], piece["count"]
                run, apart = piece.get("run", count), (tensor["shape"] or [0])[-1]
                end = first + (count // run - 1) * apart + run
                whole = count == total
                runs = f",{run}/{apart}" if "run" in piece else ""
                name = tensor["name"] if whole else f"{tensor['name']}[{first}:{end}{runs}]"
                dtype, shape, found = files[piece["file"]][name]
                assert dtype == tensor["dtype"], name
                assert shape == (tensor["shape"] if whole else [piece["count"]]), name
                for i in range(count // run):
                    at = (first + i * apart) * size
                    data[at:at + run * size] = found[i * run * size:(i + 1) * run * size]
            yield part["name"], tensor["name"], tensor["dtype"], tensor["shape"], data


for part, name, dtype, shape, data in sorted(tensors(sys.argv[1]), key=lambda each: each[:2]):
    print(part, name, dtype, "x".join(map(str, shape)), hashlib.sha256(data).hexdigest())
