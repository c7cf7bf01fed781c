# SPDX-License-Identifier: Apache-2.0
"""Images are decoded by a module that the wheel has beside the library."""
import struct
import zlib
from pathlib import Path

import graphrt
import numpy as np
import pytest
from conftest import info, model
from onnx import TensorProto, helper

PIXELS = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [9, 8, 7]], [[1, 2, 3], [4, 5, 6]]], np.uint8)


def bmp(pixels):
    """24 bits a pixel, the last row first, rows padded to four bytes."""
    height, width = pixels.shape[:2]
    rows = b"".join(row[:, ::-1].tobytes().ljust((3 * width + 3) // 4 * 4, b"\0") for row in pixels[::-1])
    return struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 54 + len(rows), 0, 0, 54, 40, width, height, 1, 24, 0, len(rows), 0, 0, 0, 0) + rows


def png(pixels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) +
            chunk(b"IEND", b""))


@pytest.mark.parametrize("encode", [bmp, png])
def test_images_are_decoded(encode, monkeypatch):
    if not (Path(graphrt.__file__).parent / "libgraphrt-image.so").exists():
        pytest.skip("the wheel was made without decoders of images: configure did not find the libraries of their formats")
    monkeypatch.delenv("GRAPHRT_BACKEND_PATH", raising=False)
    decoder = model([helper.make_node("ImageDecoder", ["x"], ["y"], pixel_format="RGB")], [info("x", TensorProto.UINT8, ["N"])],
                    [info("y", TensorProto.UINT8, ["H", "W", 3])])
    assert np.array_equal(graphrt.Session(decoder)(encode(PIXELS)), PIXELS)
