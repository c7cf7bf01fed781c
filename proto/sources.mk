# SPDX-License-Identifier: Apache-2.0
# Wire schemas, compiled by protoc-c into the build directory. One line per schema.
proto_BUILT =
proto_BUILT += proto/onnx.pb-c.c proto/onnx.pb-c.h
EXTRA_DIST += proto/onnx.proto
proto_BUILT += proto/plan.pb-c.c proto/plan.pb-c.h
EXTRA_DIST += proto/plan.proto
BUILT_SOURCES += $(proto_BUILT)
proto/%.pb-c.c proto/%.pb-c.h: $(top_srcdir)/proto/%.proto
	$(AM_V_GEN)$(MKDIR_P) proto && $(PROTOC_C) --c_out=. -I$(top_srcdir) $<
noinst_LTLIBRARIES += libgrtproto.la
libgrtproto_la_SOURCES =
nodist_libgrtproto_la_SOURCES = $(proto_BUILT)
libgrtproto_la_LIBADD = $(PROTOBUF_C_LIBS)
