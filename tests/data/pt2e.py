#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases/pt2e: a small convolutional network that PyTorch quantised after export (PT2E: int8 weights per channel, uint8
activations) and wrote as ONNX, with a random input and what PyTorch makes of it. Wants torch 2.15, torchao 0.18 and onnxscript.
What is quantised dynamically, neither PyTorch's exporter of that version writes as ONNX. usage: pt2e.py"""
from pathlib import Path

import onnx
import torch
import torchao.quantization.pt2e.quantizer.x86_inductor_quantizer as x86
from onnx import numpy_helper
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

SHAPE = (1, 3, 32, 32)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16)
        self.depthwise, self.pointwise = nn.Conv2d(16, 16, 3, 1, 1, groups=16), nn.Conv2d(16, 16, 1)
        self.last = nn.Linear(16, 10)

    def forward(self, x):
        x = torch.relu(self.norm(self.first(x)))
        x = x + self.pointwise(torch.relu(self.depthwise(x)))
        return self.last(nn.functional.adaptive_avg_pool2d(nn.functional.max_pool2d(x, 2), 1).flatten(1))


def main():
    torch.manual_seed(0)
    x = torch.randn(SHAPE)
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(torch.export.export(Net().eval(), (x,)).module(), quantizer)
    for _ in range(4):
        prepared(torch.randn(SHAPE))
    converted = convert_pt2e(prepared)
    case = Path(__file__).parent / "cases" / "pt2e"
    data = case / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    model = torch.onnx.export(torch.export.export(converted, (x,)), dynamo=True, verbose=False).model_proto
    for node in model.graph.node:  # places of the machine that exported it
        del node.metadata_props[:]
    onnx.save(model, case / "model.onnx")
    for name, tensor in (("input_0", x), ("output_0", converted(x))):
        (data / f"{name}.pb").write_bytes(numpy_helper.from_array(tensor.detach().numpy(), name).SerializeToString())


if __name__ == "__main__":
    main()
