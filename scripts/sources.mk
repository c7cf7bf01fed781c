# SPDX-License-Identifier: Apache-2.0
# Scripts that are run from a checkout, and make's doors to them.
EXTRA_DIST += autogen.sh quickstart.sh run-tests.sh CHANGELOG.md CONTRIBUTING.md .ci/run \
	scripts/packages.txt scripts/setup.sh scripts/ui.sh scripts/gpu.sh scripts/totals.sh scripts/make-check.sh scripts/sanitize.sh \
	scripts/check-includes.sh scripts/check-calls.sh scripts/format.sh scripts/lint.sh .clang-format .clang-tidy .cppcheck-suppressions .shellcheckrc
.PHONY: lint format generated
# Headers that protoc-c and the lists make: wanted before a single program is built.
generated: $(BUILT_SOURCES)
lint: $(BUILT_SOURCES)
	$(top_srcdir)/scripts/lint.sh $(top_builddir)
format:
	$(top_srcdir)/scripts/format.sh
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = graphrt.pc
