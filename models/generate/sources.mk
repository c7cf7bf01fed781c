# SPDX-License-Identifier: Apache-2.0
# The model generator. The program also needs the object of proto/onnx.pb-c.c (or the library that holds it),
# $(PROTOBUF_C_LIBS) and -lm.
models_generate_grt_models_SOURCES = \
	models/generate/builder.c \
	models/generate/builder.h \
	models/generate/bert.c \
	models/generate/chain.c \
	models/generate/cnn.c \
	models/generate/cnn.h \
	models/generate/decoder.c \
	models/generate/deep_ffn.c \
	models/generate/densenet.c \
	models/generate/family.h \
	models/generate/fill.c \
	models/generate/fill.h \
	models/generate/main.c \
	models/generate/mobilenet.c \
	models/generate/parallel_fcn.c \
	models/generate/resnet.c \
	models/generate/transformer.c \
	models/generate/transformer.h \
	models/generate/vit.c \
	models/generate/writer.c \
	models/generate/writer.h
