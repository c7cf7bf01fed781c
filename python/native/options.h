/* SPDX-License-Identifier: Apache-2.0 */
/* Compile options out of keyword arguments, for opening, compiling and checking alike. */
#ifndef GRAPHRT_PYTHON_OPTIONS_H
#define GRAPHRT_PYTHON_OPTIONS_H

#include "status.h"

#include <deque>
#include <exception>
#include <vector>

/* Bytes of an object with a buffer, which stay where they are. The GIL is held when they are given back. */
class Bytes
{
  public:
    explicit Bytes(nb::handle object) : buffer_(new Py_buffer{})
    {
        if (PyObject_GetBuffer(object.ptr(), buffer_.get(), PyBUF_SIMPLE) != 0)
            throw nb::python_error();
    }
    const void *data() const
    {
        return buffer_->buf;
    }
    size_t size() const
    {
        return (size_t)buffer_->len;
    }

  private:
    struct Release {
        void operator()(Py_buffer *buffer) const
        {
            PyBuffer_Release(buffer); /* does nothing where there is none */
            delete buffer;
        }
    };
    std::unique_ptr<Py_buffer, Release> buffer_;
};

class CompileOptions
{
  public:
    /* Raises TypeError for a name that is no option. */
    CompileOptions(const std::string &target, nb::handle keywords);
    CompileOptions(const CompileOptions &) = delete;
    CompileOptions &operator=(const CompileOptions &) = delete;
    /* Raises what a callback raised, else the status's error. */
    void finish(grt_status status);
    /* What a model that was opened with these options reads as long as it exists. */
    std::vector<Bytes> release_external_data()
    {
        return std::move(buffers_);
    }
    grt_compile_options raw;

  private:
    void set(const std::string &name, nb::handle value);
    void set_shapes(nb::handle shapes);
    void set_external_data(nb::handle files);
    const char *text(nb::handle value);
    template <typename Call> auto guarded(Call call);

    std::deque<std::string> texts_;
    std::vector<grt_input_shape> shapes_;
    std::vector<grt_external_data> external_data_;
    std::vector<Bytes> buffers_;
    nb::object progress_, cancel_, warning_;
    std::exception_ptr raised_; /* a callback's exception: it ends the call */
};

/* Dims of inputs by name; `names` keeps the names. */
std::vector<grt_input_shape> shapes_of(nb::handle shapes, std::deque<std::string> &names);
/* graphrt.Finding */
nb::object finding_to_python(const grt_finding &finding);

#endif
