# SPDX-License-Identifier: Apache-2.0
# The two tools; they see the public header and nothing else of the library.
bin_PROGRAMS += graphc graphrun
tools_SHARED =
tools_SHARED += tools/options.h tools/options.c
tools_SHARED += tools/piped.h tools/piped.c
tools_SHARED += tools/progress.h tools/progress.c
tools_SHARED += tools/report.h tools/report.c
tools_SHARED += tools/trust.h tools/trust.c
tools_SHARED += tools/whole_file.h tools/whole_file.c
tools_SHARED += tools/element.h tools/element.c
tools_SHARED += tools/npy.h tools/npy.c
tools_SHARED += tools/inputs.h tools/inputs.c
tools_SHARED += tools/devices.h tools/devices.c
tools_SHARED += tools/loaded.h tools/loaded.c
tools_SHARED += tools/descriptions.h tools/descriptions.c
tools_SHARED += tools/targets.h tools/targets.c
tools_CPPFLAGS = -I$(top_srcdir) -I$(top_srcdir)/include $(JANSSON_CFLAGS) -DGRT_DATA_DIR='"$(pkgdatadir)"'
tools_LDADD = libgraphrt.la $(JANSSON_LIBS) -lm
graphrun_SOURCES = $(tools_SHARED)
graphrun_SOURCES += tools/graphrun.c
graphrun_SOURCES += tools/commands.h
graphrun_SOURCES += tools/run_request.h
graphrun_SOURCES += tools/run.c
graphrun_SOURCES += tools/check.c
graphrun_SOURCES += tools/bench.c
graphrun_SOURCES += tools/input_lists.h tools/input_lists.c
graphrun_SOURCES += tools/runs.h tools/runs.c
graphrun_SOURCES += tools/shard.h tools/shard.c
graphrun_SOURCES += tools/manifest.h tools/manifest.c
graphrun_SOURCES += tools/run_report.h tools/run_report.c
graphrun_SOURCES += tools/throughput.h tools/throughput.c
graphrun_SOURCES += tools/explain.h tools/explain.c
graphrun_SOURCES += tools/outputs.h tools/outputs.c
graphrun_SOURCES += tools/latencies.h tools/latencies.c
graphrun_SOURCES += tools/cases.h tools/cases.c
graphrun_SOURCES += tools/verdicts.h tools/verdicts.c
graphrun_SOURCES += tools/compare.h tools/compare.c
graphrun_SOURCES += tools/workers.h tools/workers.c
graphrun_CPPFLAGS = $(tools_CPPFLAGS)
graphrun_LDFLAGS = $(AM_LDFLAGS) $(TOOL_RUNPATH)
graphrun_LDADD = $(tools_LDADD)
graphc_SOURCES = $(tools_SHARED)
graphc_SOURCES += tools/graphc.c
graphc_SOURCES += tools/optimize.h tools/optimize.c
graphc_SOURCES += tools/streamed.h tools/streamed.c
graphc_SOURCES += tools/interrupt.h tools/interrupt.c
graphc_SOURCES += tools/list_devices.h tools/list_devices.c
graphc_SOURCES += tools/cache.h tools/cache.c
graphc_SOURCES += tools/tune.h tools/tune.c
graphc_SOURCES += tools/sign.h tools/sign.c
graphc_SOURCES += tools/inspect.h tools/inspect.c
graphc_SOURCES += tools/dot.c
graphc_CPPFLAGS = $(tools_CPPFLAGS)
graphc_LDFLAGS = $(AM_LDFLAGS) $(TOOL_RUNPATH)
graphc_LDADD = $(tools_LDADD)
# Descriptions of GPUs, for graphc optimize --target. The build tree has them where graphc looks, beside itself.
devicesdir = $(pkgdatadir)/devices
dist_devices_DATA =
dist_devices_DATA += share/devices/a10.json
dist_devices_DATA += share/devices/a100.json
dist_devices_DATA += share/devices/a100-80gb.json
dist_devices_DATA += share/devices/h100.json
dist_devices_DATA += share/devices/h200.json
dist_devices_DATA += share/devices/l4.json
dist_devices_DATA += share/devices/rtx3090.json
dist_devices_DATA += share/devices/rtx4090.json
EXTRA_DIST += share/devices/README.md
BUILT_DEVICES = $(dist_devices_DATA:share/devices/%=share/graphrt/devices/%)
noinst_DATA += $(BUILT_DEVICES)
EXTRA_graphc_DEPENDENCIES = $(BUILT_DEVICES)
CLEANFILES += $(BUILT_DEVICES)
share/graphrt/devices/%.json: $(top_srcdir)/share/devices/%.json
	$(AM_V_GEN)$(MKDIR_P) share/graphrt/devices && cp $< $@
