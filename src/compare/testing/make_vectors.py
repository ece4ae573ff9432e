#!/usr/bin/env python3
# Makes vectors.h: what numpy and scipy say about a few samples. By hand, where scipy is installed:
#   make_vectors.py > vectors.h
import itertools
import numpy as np
from scipy import stats

rng = np.random.default_rng(20261115)
samples = {
    "gauss": rng.normal(0.01, 0.01, 25),
    "spiked": np.where(rng.random(40) < 0.1, rng.exponential(0.2, 40), rng.normal(0.002, 0.005, 40)),
    "few": rng.normal(-0.02, 0.02, 7),
    "many": rng.normal(0.003, 0.02, 130),
    "ties": np.round(rng.normal(0.01, 0.01, 30), 2),
}


def depth(n, alpha):
    """Largest k with P(W < k) <= alpha/2, by counting subsets of ranks."""
    counts = [1]
    for rank in range(1, n + 1):
        grown = counts + [0] * rank
        for i, c in enumerate(counts):
            grown[i + rank] += c
        counts = grown
    below, k = 0, 0
    while (below + counts[k]) * 2 <= alpha * 2**n:
        below += counts[k]
        k += 1
    return k


def line(name, d):
    n = len(d)
    walsh = np.sort([(a + b) / 2 for a, b in itertools.combinations_with_replacement(d, 2)])
    k = depth(n, 0.05)
    t = stats.t.interval(0.95, n - 1, loc=d.mean(), scale=stats.sem(d))
    b = stats.bootstrap((d,), np.mean, n_resamples=200000, batch=2000, method="BCa",
                        random_state=1).confidence_interval
    signs = stats.binomtest(int((d > 0).sum()), int((d != 0).sum())).pvalue
    order = stats.spearmanr(np.arange(n), d).statistic
    values = ", ".join(repr(float(v)) for v in d)
    facts = [float(v) for v in (np.median(walsh), walsh[k - 1], walsh[len(walsh) - k], d.mean(),
                                d.std(ddof=1), t[0], t[1], b.low, b.high, signs, order)]
    print(f'    {{"{name}",\n     {{{values}}},\n     {", ".join(repr(f) for f in facts)}}},')


print("// Made by make_vectors.py with numpy %s, scipy %s. Not edited by hand." %
      (np.__version__, __import__("scipy").__version__))
print("// clang-format off\n#pragma once\n\n#include <vector>\n\nnamespace assay::compare::testing {\n")
print("struct Vector {\n  const char* name;\n  std::vector<double> values;\n"
      "  double hodges_lehmann, low, high;  // signed rank\n  double mean, deviation, t_low, t_high;\n"
      "  double bootstrap_low, bootstrap_high;\n  double sign_p, spearman;\n};\n")
print("inline const std::vector<Vector> kVectors = {")
for name, d in samples.items():
    line(name, d)
print("};\n")
print("struct Quantile {\n  double freedom;  // 0: normal\n  double p, value;\n};\n")
print("inline const std::vector<Quantile> kQuantiles = {")
for freedom in (0, 1, 2, 3.7, 5, 19, 61, 1000):
    for p in (0.0005, 0.025, 0.3, 0.8, 0.975, 0.999):
        v = stats.norm.ppf(p) if freedom == 0 else stats.t.ppf(p, freedom)
        print(f"    {{{freedom}, {p}, {float(v)!r}}},")
print("};\n\n}  // namespace assay::compare::testing\n// clang-format on")
