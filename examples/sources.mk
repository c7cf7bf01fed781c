# SPDX-License-Identifier: Apache-2.0
# One complete program per problem; each uses the public header and the shared library only. Built with the rest, not installed.
noinst_PROGRAMS += examples/digits examples/threads examples/dynamic_shapes examples/pool examples/processes examples/service examples/state examples/stop examples/streams examples/trace examples/profile examples/memory examples/latency examples/weights examples/buffers examples/faults
examples_digits_SOURCES = examples/digits.c examples/npy.c examples/npy.h
examples_digits_LDADD = libgraphrt.la
examples_threads_SOURCES = examples/threads.c
examples_threads_LDADD = libgraphrt.la -lpthread
examples_dynamic_shapes_SOURCES = examples/dynamic_shapes.c
examples_dynamic_shapes_LDADD = libgraphrt.la
examples_pool_SOURCES = examples/pool.c
examples_pool_LDADD = libgraphrt.la
examples_processes_SOURCES = examples/processes.c
examples_processes_LDADD = libgraphrt.la
examples_service_SOURCES = examples/service.c
examples_service_LDADD = libgraphrt.la
examples_state_SOURCES = examples/state.c
examples_state_LDADD = libgraphrt.la
examples_profile_SOURCES = examples/profile.c
examples_profile_LDADD = libgraphrt.la
examples_trace_SOURCES = examples/trace.c
examples_trace_LDADD = libgraphrt.la -lpthread
examples_memory_SOURCES = examples/memory.c
examples_memory_LDADD = libgraphrt.la
examples_latency_SOURCES = examples/latency.c
examples_latency_LDADD = libgraphrt.la
examples_weights_SOURCES = examples/weights.c
examples_weights_LDADD = libgraphrt.la -lpthread
examples_buffers_SOURCES = examples/buffers.c
examples_buffers_LDADD = libgraphrt.la
examples_faults_SOURCES = examples/faults.c
examples_faults_LDADD = libgraphrt.la -lpthread
examples_streams_SOURCES = examples/streams.c
examples_streams_LDADD = libgraphrt.la
examples_stop_SOURCES = examples/stop.c
examples_stop_LDADD = libgraphrt.la
# C++, by graphrt.hpp.
noinst_PROGRAMS += examples/digits_cpp
examples_digits_cpp_SOURCES = examples/digits.cc
examples_digits_cpp_CXXFLAGS = $(AM_CXXFLAGS) -std=c++17 $(SANITIZE)
examples_digits_cpp_LDADD = libgraphrt.la
# A shared object that programs load; -rpath makes libtool build one though it is not installed.
noinst_LTLIBRARIES += examples/custom_ops.la
examples_custom_ops_la_SOURCES = examples/custom_ops.c
examples_custom_ops_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
