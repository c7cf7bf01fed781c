/* SPDX-License-Identifier: Apache-2.0 */
/* Compile options out of keyword arguments, for opening, compiling and checking alike. */
#ifndef GRAPHRT_PYTHON_OPTIONS_H
#define GRAPHRT_PYTHON_OPTIONS_H

#include "status.h"

#include <deque>
#include <exception>
#include <vector>

class CompileOptions
{
  public:
    /* Raises TypeError for a name that is no option. */
    CompileOptions(const std::string &target, nb::handle keywords);
    CompileOptions(const CompileOptions &) = delete;
    CompileOptions &operator=(const CompileOptions &) = delete;
    /* Raises what a callback raised, else the status's error. */
    void finish(grt_status status);
    grt_compile_options raw;

  private:
    void set(const std::string &name, nb::handle value);
    void set_shapes(nb::handle shapes);
    const char *text(nb::handle value);
    template <typename Call> auto guarded(Call call);

    std::deque<std::string> texts_;
    std::vector<grt_input_shape> shapes_;
    nb::object progress_, cancel_, warning_;
    std::exception_ptr raised_; /* a callback's exception: it ends the call */
};

/* graphrt.Finding */
nb::object finding_to_python(const grt_finding &finding);

#endif
