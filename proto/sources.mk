# Wire schemas, compiled by protoc-c into the build directory.
EXTRA_DIST += proto/onnx.proto proto/plan.proto
proto_BUILT = proto/onnx.pb-c.c proto/onnx.pb-c.h proto/plan.pb-c.c proto/plan.pb-c.h
BUILT_SOURCES += $(proto_BUILT)
proto/%.pb-c.c proto/%.pb-c.h: $(top_srcdir)/proto/%.proto
	$(AM_V_GEN)$(MKDIR_P) proto && $(PROTOC_C) --c_out=. -I$(top_srcdir) $<
