#!/usr/bin/env python3
"""Makes reference.safetensors with the PyPI package `safetensors` (0.8.0 when it was committed), for
the tests of our reader. Needs: pip install safetensors numpy."""

import pathlib

import numpy
from safetensors.numpy import save_file

tensors = {
    "layers.0.qkv": numpy.arange(12, dtype=numpy.float32).reshape(3, 4) / 8,
    "embedding": numpy.array([[1, -2], [30000, -40000]], dtype=numpy.int32),
    "tokens": numpy.array([1, 65535, 7], dtype=numpy.uint16),
    "position": numpy.array(1 << 40, dtype=numpy.int64),
    "half": numpy.array([0.5, -1.5], dtype=numpy.float16),
    "nothing": numpy.zeros((0, 5), dtype=numpy.float32),
    "naïve \"name\"": numpy.array([255], dtype=numpy.uint8),
}
path = pathlib.Path(__file__).with_name("reference.safetensors")
save_file(tensors, path, metadata={"format": "np", "made by": "the reference — 参考"})
print(path, path.stat().st_size)
