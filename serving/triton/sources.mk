# SPDX-License-Identifier: Apache-2.0
# The backend for Triton Inference Server. Functions of the server, which has them when it opens the backend, stay undefined.
tritondir = $(pkglibdir)/triton/graphrt
triton_LTLIBRARIES = libtriton_graphrt.la
libtriton_graphrt_la_SOURCES =
libtriton_graphrt_la_SOURCES += serving/triton/tritonbackend.h
libtriton_graphrt_la_SOURCES += serving/triton/errors.h serving/triton/errors.c
libtriton_graphrt_la_SOURCES += serving/triton/dtypes.h serving/triton/dtypes.c
libtriton_graphrt_la_SOURCES += serving/triton/strings.h serving/triton/strings.c
libtriton_graphrt_la_SOURCES += serving/triton/copiers.h serving/triton/copiers.c
libtriton_graphrt_la_SOURCES += serving/triton/settings.h serving/triton/settings.c
libtriton_graphrt_la_SOURCES += serving/triton/served_model.h serving/triton/served_model.c
libtriton_graphrt_la_SOURCES += serving/triton/complete.h serving/triton/complete.c
libtriton_graphrt_la_SOURCES += serving/triton/request.h serving/triton/request.c
libtriton_graphrt_la_SOURCES += serving/triton/instance.h serving/triton/instance.c
libtriton_graphrt_la_SOURCES += serving/triton/gather.h serving/triton/gather.c
libtriton_graphrt_la_SOURCES += serving/triton/scatter.h serving/triton/scatter.c
libtriton_graphrt_la_SOURCES += serving/triton/execute.h serving/triton/execute.c
libtriton_graphrt_la_SOURCES += serving/triton/backend.c
libtriton_graphrt_la_CPPFLAGS = -I$(top_srcdir) -I$(top_srcdir)/include $(JANSSON_CFLAGS)
libtriton_graphrt_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared $(TRITON_RUNPATH)
libtriton_graphrt_la_LIBADD = libgraphrt.la $(JANSSON_LIBS) -lpthread
EXTRA_DIST += serving/triton/bench.py serving/triton/requirements.in serving/triton/requirements.txt serving/triton/test.sh serving/triton/tests
