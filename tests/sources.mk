# Unit tests: one file per noun, each with `Suite *suite_<file>(void)`; add the file to unit_SOURCES, nothing else.
# Check runs every test in a process of its own, with a time limit.
check_PROGRAMS += tests/unit/unit
TESTS += tests/unit/unit
unit_SOURCES =
unit_SOURCES += tests/unit/test_dim.c
unit_SOURCES += tests/unit/test_import.c
unit_SOURCES += tests/unit/test_import_tensors.c
unit_SOURCES += tests/unit/test_plan.c
unit_SHARED =
unit_SHARED += tests/unit/onnx_model.c tests/unit/onnx_model.h
unit_SHARED += tests/unit/plan_sample.c tests/unit/plan_sample.h
tests_unit_unit_SOURCES = tests/unit/main.c $(unit_SOURCES) $(unit_SHARED)
tests_unit_unit_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_unit_unit_LDADD = libgraphrt-all.la $(CHECK_LIBS) $(JANSSON_LIBS)
BUILT_SOURCES += unit_suites.inc
unit_suites.inc: $(top_srcdir)/tests/sources.mk Makefile
	$(AM_V_GEN)for f in $(unit_SOURCES); do echo "X($$(basename $$f .c))"; done > $@.tmp && mv $@.tmp $@
