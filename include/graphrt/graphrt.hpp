// SPDX-License-Identifier: Apache-2.0
// libgraphrt in C++17: the objects of graphrt.h as classes that own them, and errors as exceptions. Header only.
//
//     graphrt::runtime runtime;
//     graphrt::session session(graphrt::model(runtime, "model.onnx"));
//     graphrt::context context(session);
//     std::vector<float> image(64);
//     context.set_input("image", graphrt::view(image.data(), {1, 1, 8, 8}));
//     context.run();
//     graphrt::tensor logits = context.output("logits");
//
// Every function does what the one of graphrt.h does whose name it has, with the same rules for threads, and throws graphrt::error where
// that returns a status. Objects can be moved and not copied; they may be destroyed in any order. get() is for functions of graphrt.h that
// have no wrapper here. A moved-from object may only be destroyed or assigned to.
#ifndef GRAPHRT_GRAPHRT_HPP
#define GRAPHRT_GRAPHRT_HPP

#include <graphrt/faults.h>
#include <graphrt/graphrt.h>
#include <graphrt/processes.h>
#include <graphrt/watch.h>

#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace graphrt
{

// What a function returned, with the thread's message for it.
class error : public std::runtime_error
{
  public:
    error(grt_status status, const std::string &message) : std::runtime_error(message), status_(status)
    {
    }
    grt_status status() const noexcept
    {
        return status_;
    }

  private:
    grt_status status_;
};

// Throws unless the status is GRT_OK.
inline void check(grt_status status)
{
    if (status != GRT_OK)
        throw error(status, grt_last_error());
}

// A struct of options, or one that a function fills in, with its size set and all else zero: the defaults.
template <class T> T zeroed() noexcept
{
    T made{};
    made.struct_size = sizeof made;
    return made;
}

namespace detail
{
template <class T, void (*Release)(T *)> struct releaser {
    void operator()(T *object) const noexcept
    {
        Release(object);
    }
};

template <class T, void (*Release)(T *)> class owner
{
  public:
    explicit owner(T *object = nullptr) noexcept : object_(object)
    {
    }
    T *get() const noexcept
    {
        return object_.get();
    }

  protected:
    template <class Make> static T *made(Make &&make)
    {
        T *object = nullptr;
        check(make(&object));
        return object;
    }

  private:
    std::unique_ptr<T, releaser<T, Release>> object_;
};

template <class T> struct dtype_of;
#define GRAPHRT_DTYPE(type, dtype)                                                                                     \
    template <> struct dtype_of<type> {                                                                                \
        static constexpr grt_dtype value = dtype;                                                                      \
    };
GRAPHRT_DTYPE(float, GRT_DTYPE_FLOAT)
GRAPHRT_DTYPE(double, GRT_DTYPE_DOUBLE)
GRAPHRT_DTYPE(bool, GRT_DTYPE_BOOL)
GRAPHRT_DTYPE(int8_t, GRT_DTYPE_INT8)
GRAPHRT_DTYPE(int16_t, GRT_DTYPE_INT16)
GRAPHRT_DTYPE(int32_t, GRT_DTYPE_INT32)
GRAPHRT_DTYPE(int64_t, GRT_DTYPE_INT64)
GRAPHRT_DTYPE(uint8_t, GRT_DTYPE_UINT8)
GRAPHRT_DTYPE(uint16_t, GRT_DTYPE_UINT16)
GRAPHRT_DTYPE(uint32_t, GRT_DTYPE_UINT32)
GRAPHRT_DTYPE(uint64_t, GRT_DTYPE_UINT64)
GRAPHRT_DTYPE(grt_string, GRT_DTYPE_STRING)
#undef GRAPHRT_DTYPE
} // namespace detail

// A view, as grt_tensor is: whoever has the memory keeps it alive.
struct tensor : grt_tensor {
    tensor() noexcept : grt_tensor{}
    {
    }
    tensor(const grt_tensor &view) noexcept : grt_tensor(view)
    {
    }
    std::vector<int64_t> shape() const
    {
        return std::vector<int64_t>(dims, dims + (rank > 0 ? rank : 0));
    }
    size_t elements() const
    {
        const int64_t n = grt_tensor_elements(this);
        if (n < 0)
            throw error(GRT_STATUS_INVALID_ARGUMENT, "the dims of the tensor are unknown, or their product is too large");
        return static_cast<size_t>(n);
    }
    // The elements; throws if they are not of type T. Host memory only is for the program to read.
    template <class T> T *values() const
    {
        if (dtype != detail::dtype_of<T>::value)
            throw error(GRT_STATUS_INVALID_ARGUMENT, std::string("the tensor has elements of ") + grt_dtype_name(dtype) + ", not of " +
                                                         grt_dtype_name(detail::dtype_of<T>::value));
        return static_cast<T *>(data);
    }
};

// A view of `data` in host memory. It is not written to where it is an input.
template <class T> tensor view(const T *data, const std::vector<int64_t> &shape)
{
    tensor t;
    if (shape.size() > GRT_MAX_RANK)
        throw error(GRT_STATUS_INVALID_ARGUMENT, "a tensor has at most 16 dims");
    t.dtype = detail::dtype_of<T>::value;
    t.rank = static_cast<int32_t>(shape.size());
    for (size_t i = 0; i < shape.size(); i++)
        t.dims[i] = shape[i];
    t.data = const_cast<T *>(data);
    return t;
}

class runtime : public detail::owner<grt_runtime, grt_runtime_release>
{
  public:
    runtime() : owner(made([](grt_runtime **out) { return grt_runtime_create(out); }))
    {
    }
    void set_threads(int32_t threads)
    {
        check(grt_runtime_set_threads(get(), threads));
    }
};

class model : public detail::owner<grt_model, grt_model_release>
{
  public:
    model(const runtime &r, const std::string &path)
        : owner(made([&](grt_model **out) { return grt_model_open(r.get(), path.c_str(), out); }))
    {
    }
    model(const runtime &r, const std::string &path, const grt_compile_options &options)
        : owner(made([&](grt_model **out) { return grt_model_open_with(r.get(), path.c_str(), &options, out); }))
    {
    }
    // From memory: grt_model_open_memory says what is copied.
    model(const runtime &r, const void *data, size_t size)
        : owner(made([&](grt_model **out) { return grt_model_open_memory(r.get(), data, size, out); }))
    {
    }
    size_t input_count() const noexcept
    {
        return grt_model_input_count(get());
    }
    size_t output_count() const noexcept
    {
        return grt_model_output_count(get());
    }
    grt_io_info input(size_t index) const
    {
        auto info = zeroed<grt_io_info>();
        check(grt_model_input(get(), index, &info));
        return info;
    }
    grt_io_info output(size_t index) const
    {
        auto info = zeroed<grt_io_info>();
        check(grt_model_output(get(), index, &info));
        return info;
    }
    grt_model_info info() const
    {
        auto found = zeroed<grt_model_info>();
        check(grt_model_get_info(get(), &found));
        return found;
    }
    // What a session on the device will have of memory.
    grt_memory_info predict_memory(const std::string &device = "cpu",
                                   const grt_memory_options &options = zeroed<grt_memory_options>()) const
    {
        auto found = zeroed<grt_memory_info>();
        check(grt_model_predict_memory(get(), device.c_str(), &options, &found));
        return found;
    }
};

class session : public detail::owner<grt_session, grt_session_release>
{
  public:
    explicit session(const model &m, const std::string &device = "cpu") : session(m, device, zeroed<grt_session_options>())
    {
    }
    session(const model &m, const std::string &device, const grt_session_options &options)
        : owner(made([&](grt_session **out) { return grt_session_create(m.get(), device.c_str(), &options, out); }))
    {
        for (size_t i = 0; i < m.input_count(); i++)
            inputs_.push_back(m.input(i).name);
        for (size_t i = 0; i < m.output_count(); i++)
            outputs_.push_back(m.output(i).name);
    }
    int32_t threads() const noexcept
    {
        return grt_session_threads(get());
    }
    grt_memory_info memory() const
    {
        auto found = zeroed<grt_memory_info>();
        check(grt_session_get_memory(get(), &found));
        return found;
    }
    // Weights that are inputs with defaults, all or none.
    void set_weights(const std::vector<std::pair<std::string, tensor>> &weights) const
    {
        std::vector<const char *> names;
        std::vector<grt_tensor> tensors;
        for (const auto &w : weights) {
            names.push_back(w.first.c_str());
            tensors.push_back(w.second);
        }
        check(grt_session_set_weights(get(), names.data(), tensors.data(), names.size()));
    }
    void copy(const grt_tensor &to, const grt_tensor &from) const
    {
        check(grt_session_copy(get(), &to, &from));
    }
    // Throws if the session is lost.
    void check_works() const
    {
        check(grt_session_check(get()));
    }
    const std::vector<std::string> &inputs() const noexcept
    {
        return inputs_;
    }
    const std::vector<std::string> &outputs() const noexcept
    {
        return outputs_;
    }

  private:
    std::vector<std::string> inputs_, outputs_;
};

// Outputs that are inputs of the next run: those of the pairs, or those that the model declares.
class state : public detail::owner<grt_state, grt_state_release>
{
  public:
    explicit state(const session &s, const std::vector<grt_state_pair> &pairs = {})
        : owner(made([&](grt_state **out) { return grt_state_create(s.get(), pairs.data(), pairs.size(), out); }))
    {
    }
    size_t count() const noexcept
    {
        return grt_state_count(get());
    }
    void reset() const
    {
        check(grt_state_reset(get()));
    }
    // A copy of what pair `index` has.
    std::unique_ptr<grt_value, detail::releaser<grt_value, grt_value_release>> save(size_t index) const
    {
        grt_value *value = nullptr;
        check(grt_state_save(get(), index, &value));
        return std::unique_ptr<grt_value, detail::releaser<grt_value, grt_value_release>>(value);
    }
    void restore(size_t index, const grt_tensor &content) const
    {
        check(grt_state_restore(get(), index, &content));
    }
    void copy_from(const state &from) const
    {
        check(grt_state_copy(get(), from.get()));
    }
};

class context : public detail::owner<grt_context, grt_context_release>
{
  public:
    explicit context(const session &s)
        : owner(made([&](grt_context **out) { return grt_context_create(s.get(), out); })), inputs_(s.inputs()), outputs_(s.outputs())
    {
    }
    void set_input(size_t index, const grt_tensor &view)
    {
        check(grt_context_set_input(get(), index, &view));
    }
    void set_input(const std::string &name, const grt_tensor &view)
    {
        set_input(find(inputs_, name, "input"), view);
    }
    // Memory that the program has for an output, instead of the context's.
    void set_output(size_t index, const grt_tensor &view)
    {
        check(grt_context_set_output(get(), index, &view));
    }
    void set_output(const std::string &name, const grt_tensor &view)
    {
        set_output(find(outputs_, name, "output"), view);
    }
    void run()
    {
        check(grt_context_run(get()));
    }
    // With a deadline, or a function that may end it.
    void run(const grt_run_options &options)
    {
        check(grt_context_run_with(get(), &options));
    }
    // From any thread, and from signal handlers.
    void cancel() const noexcept
    {
        grt_context_cancel(get());
    }
    void set_state(const state *s)
    {
        check(grt_context_set_state(get(), s ? s->get() : nullptr));
    }
    // nullptr: no more.
    void set_profile(const grt_profile_options *options)
    {
        check(grt_context_set_profile(get(), options));
    }
    void set_watch(void (*watch)(void *user, const grt_watched *watched), void *user)
    {
        check(grt_context_set_watch(get(), watch, user));
    }
    // Bytes of the device's memory that were given back.
    uint64_t trim()
    {
        uint64_t bytes = 0;
        check(grt_context_trim(get(), &bytes));
        return bytes;
    }
    tensor output_dims(size_t index)
    {
        tensor found;
        check(grt_context_output_dims(get(), index, &found));
        return found;
    }
    void run_async(void *stream = nullptr)
    {
        check(grt_context_run_async(get(), stream));
    }
    tensor output(size_t index) const
    {
        tensor found;
        check(grt_context_get_output(get(), index, &found));
        return found;
    }
    tensor output(const std::string &name) const
    {
        return output(find(outputs_, name, "output"));
    }

  private:
    static size_t find(const std::vector<std::string> &names, const std::string &name, const char *what)
    {
        for (size_t i = 0; i < names.size(); i++)
            if (names[i] == name)
                return i;
        std::string known;
        for (const auto &n : names)
            known += (known.empty() ? "" : ", ") + n;
        throw error(GRT_STATUS_INVALID_ARGUMENT, std::string("the model has no ") + what + " '" + name + "', but: " + known);
    }
    std::vector<std::string> inputs_, outputs_;
};

// A run that was submitted to a pool. Its end waits until the run is done.
class request : public detail::owner<grt_request, grt_request_release>
{
  public:
    using owner::owner;
    void wait() const
    {
        check(grt_request_wait(get()));
    }
    // False: it is not done at the deadline, on the clock of grt_clock_ms.
    bool wait_until(double deadline_ms) const
    {
        const grt_status status = grt_request_wait_until(get(), deadline_ms);
        if (status != GRT_STATUS_BUSY)
            check(status);
        return status == GRT_OK;
    }
    void cancel() const noexcept
    {
        grt_request_cancel(get());
    }
    grt_request_info info() const
    {
        auto found = zeroed<grt_request_info>();
        check(grt_request_get_info(get(), &found));
        return found;
    }
    tensor output(size_t index) const
    {
        tensor found;
        check(grt_request_get_output(get(), index, &found));
        return found;
    }
};

class pool : public detail::owner<grt_pool, grt_pool_release>
{
  public:
    explicit pool(const session &s) : pool({&s}, zeroed<grt_pool_options>())
    {
    }
    pool(std::initializer_list<const session *> sessions, const grt_pool_options &options)
        : owner(made([&](grt_pool **out) {
              std::vector<grt_session *> list;
              for (const session *s : sessions)
                  list.push_back(s->get());
              return grt_pool_create(list.data(), list.size(), &options, out);
          }))
    {
    }
    // The data of inputs and outputs is in use until the request is done. outputs may be empty: then they are in memory of the request.
    request submit(const std::vector<tensor> &inputs, const std::vector<tensor> &outputs = {}) const
    {
        const std::vector<grt_tensor> in(inputs.begin(), inputs.end()), out(outputs.begin(), outputs.end());
        grt_request *submitted = nullptr;
        check(grt_pool_submit(get(), in.data(), in.size(), out.data(), out.size(), &submitted));
        return request(submitted);
    }
    // With a lane, a priority, a deadline, a callback. Where `done` is set, release the request in one place only.
    request submit(const grt_submission &submission) const
    {
        grt_request *submitted = nullptr;
        check(grt_pool_submit_with(get(), &submission, &submitted));
        return request(submitted);
    }
    // False, and `out` stays as it is: the queue is full.
    bool try_submit(const grt_submission &submission, request &out) const
    {
        grt_request *submitted = nullptr;
        const grt_status status = grt_pool_try_submit(get(), &submission, &submitted);
        if (status == GRT_STATUS_BUSY)
            return false;
        check(status);
        out = request(submitted);
        return true;
    }
    // The number of the new lane.
    size_t add(std::initializer_list<const session *> sessions, const grt_pool_options &options) const
    {
        std::vector<grt_session *> list;
        size_t lane = 0;
        for (const session *s : sessions)
            list.push_back(s->get());
        check(grt_pool_add(get(), list.data(), list.size(), &options, &lane));
        return lane;
    }
    // A lane whose sessions are each in a process of its own; its number.
    size_t add_processes(const model &m, const std::vector<std::string> &devices,
                         const grt_pool_options &options = zeroed<grt_pool_options>(),
                         const grt_process_options &processes = zeroed<grt_process_options>()) const
    {
        std::vector<const char *> names;
        size_t lane = 0;
        for (const std::string &device : devices)
            names.push_back(device.c_str());
        check(grt_pool_add_processes(get(), m.get(), names.data(), names.size(), &options, &processes, &lane));
        return lane;
    }
    grt_process_info process(size_t lane, size_t index) const
    {
        auto found = zeroed<grt_process_info>();
        check(grt_pool_get_process(get(), lane, index, &found));
        return found;
    }
    // Readable while a request that was submitted with `collect` is done and not taken.
    int fd() const
    {
        int found = -1;
        check(grt_pool_get_fd(get(), &found));
        return found;
    }
    // One of these, which the caller has as another object or by its `user`; nullptr: none is done.
    grt_request *take_done() const
    {
        grt_request *found = nullptr;
        const grt_status status = grt_pool_take_done(get(), &found);
        if (status != GRT_STATUS_BUSY)
            check(status);
        return found;
    }
    void replace(size_t lane, size_t index, const session &s) const
    {
        check(grt_pool_replace_session(get(), lane, index, s.get()));
    }
    void cancel() const noexcept
    {
        grt_pool_cancel(get());
    }
    // Throw BUSY, and DEADLINE_EXCEEDED, if requests are not done at the deadline; 0: none.
    void drain(double deadline_ms = 0) const
    {
        check(grt_pool_drain(get(), deadline_ms));
    }
    void shutdown(double deadline_ms = 0) const
    {
        check(grt_pool_shutdown(get(), deadline_ms));
    }
    grt_pool_stats stats(size_t lane = 0) const
    {
        auto found = zeroed<grt_pool_stats>();
        check(grt_pool_get_stats(get(), lane, &found));
        return found;
    }
    grt_histogram histogram(grt_pool_phase phase, size_t lane = 0) const
    {
        auto found = zeroed<grt_histogram>();
        check(grt_pool_get_histogram(get(), lane, phase, &found));
        return found;
    }
};

// What a program that a lane of processes starts calls with its second argument; returns when the pool has no more use for it.
inline void serve_process(int fd)
{
    check(grt_process_serve(fd));
}

// Compile a model to a plan.
inline void compile(const std::string &onnx_path, const std::string &plan_path, const grt_compile_options &options = zeroed<grt_compile_options>())
{
    check(grt_compile(onnx_path.c_str(), &options, plan_path.c_str()));
}

} // namespace graphrt
#endif
