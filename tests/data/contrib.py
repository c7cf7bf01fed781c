#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cases of the operators of com.microsoft and ai.onnx.ml, and of forms that the official cases lack, one node each, with
what ONNX Runtime's CPU kernels make of random inputs, or, where it has none, NumPy; contrib_cases/ has them, a file a
family. Writes contrib.tar.xz beside itself: contrib/NAME/{model.onnx,data.json,test_data_set_0/*.pb}.

usage: contrib.py    (pip install onnxruntime onnx numpy)
"""
import io
import pathlib
import tarfile

from contrib_cases import attention, classical, elementwise, quantized, recurrent, tensors
from contrib_cases.common import files

# In this order: the random numbers follow from it.
for group in (classical.svm, tensors.halves, quantized.moe, elementwise.activations, elementwise.norms,
              elementwise.products, attention.multi_head, attention.attention, attention.group_query, quantized.weights,
              quantized.quantized, recurrent.lstm, tensors.tensors, tensors.old, classical.maps, classical.probabilities,
              tensors.tokens, recurrent.states, attention.positions, elementwise.simple, elementwise.standard,
              elementwise.fused, classical.transforms, attention.windowed_caches, recurrent.dynamic_lstms):
    group()
with tarfile.open(pathlib.Path(__file__).with_name("contrib.tar.xz"), "w:xz") as archive:
    for name, data in sorted(files.items()):
        info = tarfile.TarInfo(f"contrib/{name}")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
