"""Reports parameters and metrics to the run of `assay run` that this program is part of.

    import assay_metrics
    assay_metrics.log_parameters(lr=0.1, optimizer="adam")
    assay_metrics.log_metrics(step, loss=0.5, accuracy=0.91)

Outside a recorded run the calls do nothing. They raise for values that cannot be recorded, because
that is a mistake in the program, and never because of the disk.

Each call appends one line of JSON to the file that the environment variable ASSAY_METRICS names,
in one write, so that threads and processes of one run can report at the same time.
"""

import json
import math
import os

__all__ = ["active", "log_metrics", "log_parameters"]
__version__ = "0.1.0"

_VARIABLE = "ASSAY_METRICS"
_LONGEST_NAME = 200


def active():
    """Whether this program is part of a recorded run."""
    return bool(os.environ.get(_VARIABLE))


def log_metrics(step=0, /, **metrics):
    """Numbers, or true or false, that were measured at a step.

    Values are anything with __float__: numbers, NumPy scalars, tensors with one element. The last
    value that a step gets for a name counts.
    """
    if isinstance(step, bool) or not hasattr(step, "__index__"):
        raise TypeError("a step is a whole number, not %r" % (step,))
    values = {_name(name): _number(name, value) for name, value in metrics.items()}
    if values:
        _append({"step": step.__index__(), "metrics": values})


def log_parameters(**parameters):
    """What the program was run with: numbers, texts, true or false, None."""
    values = {_name(name): _parameter(value) for name, value in parameters.items()}
    if values:
        _append({"parameters": values})


def _name(name):
    if not name or len(name.encode()) > _LONGEST_NAME or any(c in name for c in "\n\t,="):
        raise ValueError("%r is not a name that can be recorded" % (name,))
    return name


def _number(name, value):
    if isinstance(value, bool):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError("metric %s: %r is not a number" % (name, value)) from None
    # JSON has no infinity and no NaN: null stands for a value that is not finite.
    return number if math.isfinite(number) else None


def _parameter(value):
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return str(value)


def _append(line):
    path = os.environ.get(_VARIABLE)
    if not path:
        return
    data = (json.dumps(line, ensure_ascii=True, allow_nan=False) + "\n").encode("ascii")
    try:
        # Not created: when it is gone, the run has ended.
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(file, data)
        finally:
            os.close(file)
    except OSError:
        pass
