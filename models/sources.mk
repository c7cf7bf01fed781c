# SPDX-License-Identifier: Apache-2.0
# Small real models with their provenance, and the generator of large ones.
include $(top_srcdir)/models/generate/sources.mk
noinst_PROGRAMS += models/generate/grt-models
models_generate_grt_models_LDADD = libgrtproto.la -lm
EXTRA_DIST += models/README.md models/digits/README.md models/digits/train.py models/digits/digits.onnx models/digits/test_images.npy models/digits/test_labels.npy
