# SPDX-License-Identifier: Apache-2.0
"""The module of the second wheel is the one that is opened. With a GPU it runs; without one it says what is missing."""
from pathlib import Path

import graphrt

assert (Path(graphrt.__file__).parent / "libgraphrt-cuda.so").exists()
count = graphrt.device_count("cuda")
mapped = {line.split()[-1] for line in open("/proc/self/maps") if "libgraphrt-cuda.so" in line}
assert mapped == {str(Path(graphrt.__file__).resolve().parent / "libgraphrt-cuda.so")}, mapped
try:
    graphrt.Session(str(Path(__file__).resolve().parents[2] / "models/digits/digits.onnx"), "cuda:0")
    assert count > 0
except graphrt.DeviceError as error:
    assert count == 0 and ("driver" in str(error) or "GPU" in str(error)), error
    print(error)
