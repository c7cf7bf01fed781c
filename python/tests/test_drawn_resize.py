# SPDX-License-Identifier: Apache-2.0
"""Resize of drawn attributes, sizes and scales beside ONNX's reference implementation."""
import graphrt
import numpy as np
import pytest
from conftest import info, model
from drawing import Drawing
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize")
SCALES = (0.3125, 0.5, 0.625, 0.75, 1.0, 1.5, 2.0, 3.25)  # of which float32 and float64 make the same
SIZES = (1, 1, 2, 3, 5, 8, 11)


class Resizing(Drawing):
    """A Resize of `moved` axes; the others keep their sizes."""

    def __init__(self, seed):
        super().__init__(seed)
        self.rank = self.pick(1, 2, 3, 4, 4, 5)
        self.shape = [self.pick(1, 2, 3, 4, 5, 6) for _ in range(self.rank)]
        self.x = self.random.standard_normal(self.shape).astype(np.float32)
        count = self.pick(*range(1, min(self.rank, 3) + 1))
        self.moved = sorted(int(axis) for axis in self.random.choice(self.rank, count, replace=False))
        self.listed = self.moved if self.chance(0.4) else list(range(self.rank))

    def spread(self, values, others):
        """An entry for each axis that is listed."""
        by_axis = dict(zip(self.moved, values))
        return [by_axis.get(axis, others(axis)) for axis in self.listed]

    def attributes(self):
        mode = self.pick("nearest", "linear", "cubic")
        made = {"mode": mode, "coordinate_transformation_mode": self.pick(*COORDINATES)}
        if mode == "nearest":
            made["nearest_mode"] = self.pick("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        elif self.chance(0.35):
            made["antialias"] = 1
        if mode == "cubic":
            made.update(cubic_coeff_a=self.pick(-0.75, -0.5, -0.3), exclude_outside=self.pick(0, 1))
        if self.chance(0.3):
            made["extrapolation_value"] = 0.625
        if len(self.listed) < self.rank or self.chance(0.2):
            made["axes"] = self.listed
        return made

    def scale_of(self, axis):
        """One that leaves an element."""
        return self.pick(*(scale for scale in SCALES if np.floor(self.shape[axis] * np.float32(scale)) >= 1))

    def made(self):
        attributes = self.attributes()
        roi = scales = sizes = ""
        if attributes["coordinate_transformation_mode"] == "tf_crop_and_resize":
            starts = self.spread(self.random.uniform(-0.2, 0.5, len(self.moved)), lambda axis: 0)
            ends = self.spread(self.random.uniform(0.4, 1.2, len(self.moved)), lambda axis: 1)
            roi = self.constant(np.array([*starts, *ends], np.float32))
        if self.chance():
            scales = self.constant(np.array(self.spread([self.scale_of(axis) for axis in self.moved], lambda axis: 1), np.float32))
        else:
            sizes = self.constant(np.array(self.spread([self.pick(*SIZES) for _ in self.moved], lambda axis: self.shape[axis]), np.int64))
            attributes["keep_aspect_ratio_policy"] = self.pick("stretch", "stretch", "not_larger", "not_smaller")
        y = self.node("Resize", ["x", roi, scales, sizes], **attributes)
        return model(self.nodes, [info("x", TensorProto.FLOAT, self.shape)], [info(y, TensorProto.FLOAT, None)], self.constants, opset=19)


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_drawn(first):
    compared = 0
    for seed in range(first, first + 50):
        drawn = Resizing(seed)
        made = drawn.made()
        with np.errstate(all="ignore"):
            try:
                wanted = ReferenceEvaluator(made).run(None, {"x": drawn.x})[0]
            except (IndexError, RuntimeError, TypeError, ValueError, ZeroDivisionError):
                continue  # what the reference cannot do
        found = graphrt.Session(made).run({"x": drawn.x}).popitem()[1]
        if 0 in wanted.shape:
            continue
        compared += 1
        attributes = {attribute.name: attribute for attribute in drawn.nodes[-1].attribute}
        assert found.shape == wanted.shape, f"seed {seed}: {attributes}"
        np.testing.assert_allclose(found, wanted, 1e-3, 1e-4, err_msg=f"seed {seed}: {attributes}")
    assert compared > 30
