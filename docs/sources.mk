# SPDX-License-Identifier: Apache-2.0
# Manual pages, written with scdoc; without it they are not built.
man_scd =
man_scd += docs/man/graphc.1.scd
man_scd += docs/man/graphrun.1.scd
EXTRA_DIST += $(man_scd)
if HAVE_SCDOC
man1_MANS = $(man_scd:.scd=)
CLEANFILES += $(man1_MANS)
endif
docs/man/%.1: $(top_srcdir)/docs/man/%.1.scd
	$(AM_V_GEN)$(MKDIR_P) docs/man && $(SCDOC) < $< > $@.tmp && mv $@.tmp $@
# In the places that the links between them expect. One line per file.
nobase_dist_doc_DATA =
nobase_dist_doc_DATA += README.md
nobase_dist_doc_DATA += CHANGELOG.md
nobase_dist_doc_DATA += CONTRIBUTING.md
nobase_dist_doc_DATA += LICENSE
nobase_dist_doc_DATA += NOTICE
nobase_dist_doc_DATA += SECURITY.md
nobase_dist_doc_DATA += docs/architecture.md
nobase_dist_doc_DATA += docs/c.md
nobase_dist_doc_DATA += docs/cpp.md
nobase_dist_doc_DATA += docs/cuda.md
nobase_dist_doc_DATA += docs/glossary.md
nobase_dist_doc_DATA += docs/guide.md
nobase_dist_doc_DATA += docs/import.md
nobase_dist_doc_DATA += docs/json.md
nobase_dist_doc_DATA += docs/models.md
nobase_dist_doc_DATA += docs/packages.md
nobase_dist_doc_DATA += docs/passes.md
nobase_dist_doc_DATA += docs/quantize.md
nobase_dist_doc_DATA += docs/services.md
nobase_dist_doc_DATA += docs/style.md
nobase_dist_doc_DATA += docs/decisions/abi.md
nobase_dist_doc_DATA += docs/decisions/choices.md
nobase_dist_doc_DATA += docs/decisions/copies.md
nobase_dist_doc_DATA += docs/decisions/cpu-math.md
nobase_dist_doc_DATA += docs/decisions/cuda.md
nobase_dist_doc_DATA += docs/decisions/dependencies.md
nobase_dist_doc_DATA += docs/decisions/devices.md
nobase_dist_doc_DATA += docs/decisions/failures.md
nobase_dist_doc_DATA += docs/decisions/forged-plans.md
nobase_dist_doc_DATA += docs/decisions/generated-kernels.md
nobase_dist_doc_DATA += docs/decisions/import.md
nobase_dist_doc_DATA += docs/decisions/integer-products.md
nobase_dist_doc_DATA += docs/decisions/weight-products.md
nobase_dist_doc_DATA += docs/measurements/weight-products.md
nobase_dist_doc_DATA += docs/decisions/index-maps.md
nobase_dist_doc_DATA += docs/decisions/onednn.md
nobase_dist_doc_DATA += docs/decisions/packing.md
nobase_dist_doc_DATA += docs/decisions/passes.md
nobase_dist_doc_DATA += docs/decisions/programs.md
nobase_dist_doc_DATA += docs/decisions/python.md
nobase_dist_doc_DATA += docs/decisions/quantise.md
nobase_dist_doc_DATA += docs/decisions/regex.md
nobase_dist_doc_DATA += docs/decisions/rooms.md
nobase_dist_doc_DATA += docs/decisions/services.md
nobase_dist_doc_DATA += docs/decisions/sessions.md
nobase_dist_doc_DATA += docs/decisions/shapes.md
nobase_dist_doc_DATA += docs/decisions/trust.md
nobase_dist_doc_DATA += docs/decisions/tuning.md
nobase_dist_doc_DATA += docs/measurements/before-after.md
nobase_dist_doc_DATA += docs/measurements/copies.md
nobase_dist_doc_DATA += docs/measurements/integer-products.md
nobase_dist_doc_DATA += docs/measurements/half-precision.md
nobase_dist_doc_DATA += docs/measurements/cpu-math.md
nobase_dist_doc_DATA += docs/measurements/cuda.md
nobase_dist_doc_DATA += docs/measurements/failures.md
nobase_dist_doc_DATA += docs/measurements/onednn.md
nobase_dist_doc_DATA += docs/measurements/passes.md
nobase_dist_doc_DATA += docs/measurements/peer-forms.md
nobase_dist_doc_DATA += docs/measurements/services.md
nobase_dist_doc_DATA += docs/measurements/start-up.md
nobase_dist_doc_DATA += docs/measurements/tuning.md
nobase_dist_doc_DATA += examples/digits.c
nobase_dist_doc_DATA += examples/digits.cc
nobase_dist_doc_DATA += examples/dynamic_shapes.c
nobase_dist_doc_DATA += examples/npy.c
nobase_dist_doc_DATA += examples/npy.h
nobase_dist_doc_DATA += examples/pool.c
nobase_dist_doc_DATA += examples/service.c
nobase_dist_doc_DATA += examples/stop.c
nobase_dist_doc_DATA += examples/threads.c
nobase_dist_doc_DATA += docs/python.md
nobase_dist_doc_DATA += docs/triton.md
nobase_dist_doc_DATA += docs/ray.md
nobase_dist_doc_DATA += docs/reports.schema.json
