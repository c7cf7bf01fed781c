// SPDX-License-Identifier: Apache-2.0
// graphrt.hpp: what it adds to the functions of graphrt.h. The last line is the totals.
#include <graphrt/graphrt.hpp>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include <poll.h>

static int passed, failed;

static void expect(bool good, const char *what)
{
    (good ? passed : failed)++;
    if (!good)
        std::printf("FAILED: %s\n", what);
}

template <class F> static void throws(grt_status status, const std::string &part, F &&f, const char *what)
{
    try {
        f();
        expect(false, what);
    } catch (const graphrt::error &e) {
        expect(e.status() == status && std::string(e.what()).find(part) != std::string::npos, what);
    }
}

static std::vector<float> some_image(float scale)
{
    std::vector<float> image(64);
    for (size_t i = 0; i < image.size(); i++)
        image[i] = scale * static_cast<float>(i % 7) / 7;
    return image;
}

static void test_errors(const graphrt::runtime &runtime, const std::string &path)
{
    throws(
        GRT_STATUS_IO, "nosuch.onnx", [&] { graphrt::model(runtime, "nosuch.onnx"); },
        "a file that is not there");
    throws(
        GRT_STATUS_INVALID_MODEL, "", [&] { graphrt::model(runtime, "abc", 3); }, "no model");
    graphrt::model model(runtime, path);
    throws(
        GRT_STATUS_DEVICE, "nosuch", [&] { graphrt::session(model, "nosuch"); }, "no device");
    graphrt::session session(model);
    graphrt::context context(session);
    throws(
        GRT_STATUS_INVALID_ARGUMENT, "image", [&] { context.run(); }, "an input that is not set");
    throws(
        GRT_STATUS_INVALID_ARGUMENT, "but: image", [&] { context.set_input("picture", graphrt::tensor()); },
        "a name that is unknown");
    const std::vector<double> wrong(64);
    throws(
        GRT_STATUS_INVALID_ARGUMENT, "float64",
        [&] {
            context.set_input("image", graphrt::view(wrong.data(), {1, 1, 8, 8}));
        },
        "a wrong type");
    throws(
        GRT_STATUS_INVALID_ARGUMENT, "16 dims",
        [&] { graphrt::view(wrong.data(), std::vector<int64_t>(17, 1)); }, "too many dims");
}

static std::vector<float> run_once(graphrt::context &context, const std::vector<float> &image)
{
    context.set_input("image", graphrt::view(image.data(), {1, 1, 8, 8}));
    context.run();
    const graphrt::tensor logits = context.output("logits");
    expect(logits.shape() == std::vector<int64_t>({1, 10}) && logits.elements() == 10,
           "the shape of an output");
    throws(
        GRT_STATUS_INVALID_ARGUMENT, "float32, not of int64", [&] { logits.values<int64_t>(); },
        "elements of another type");
    return std::vector<float>(logits.values<float>(), logits.values<float>() + 10);
}

// Objects outlive what they were made from, and can be moved.
static graphrt::context make_context(const std::string &path)
{
    graphrt::runtime runtime;
    runtime.set_threads(8);
    auto options = graphrt::zeroed<grt_session_options>();
    options.threads = 1;
    graphrt::session session(graphrt::model(runtime, path), "cpu", options);
    expect(session.threads() == 1, "options of a session");
    return graphrt::context(session);
}

static void test_pool(const graphrt::runtime &runtime, const std::string &path,
                      const std::vector<float> &image, const std::vector<float> &expected)
{
    graphrt::session session(graphrt::model(runtime, path));
    graphrt::pool pool(session);
    graphrt::request own = pool.submit({graphrt::view(image.data(), {1, 1, 8, 8})});
    std::vector<float> logits(10);
    graphrt::request bound =
        pool.submit({graphrt::view(image.data(), {1, 1, 8, 8})}, {graphrt::view(logits.data(), {1, 10})});
    own.wait();
    bound.wait();
    expect(std::vector<float>(own.output(0).values<float>(), own.output(0).values<float>() + 10) == expected,
           "a pool's result");
    expect(logits == expected, "a pool's result in memory of the program");
    graphrt::request wrong = pool.submit({graphrt::view(image.data(), {1, 64})});
    throws(
        GRT_STATUS_INVALID_ARGUMENT, "image", [&] { wrong.wait(); }, "a request that fails");
}

static void test_service(const graphrt::runtime &runtime, const std::string &path,
                         const std::vector<float> &image, const std::vector<float> &expected)
{
    graphrt::model model(runtime, path);
    const grt_memory_info predicted = model.predict_memory();
    auto options = graphrt::zeroed<grt_session_options>();
    options.memory_limit = predicted.total_bytes;
    graphrt::session session(model, "cpu", options);
    session.check_works();
    graphrt::context context(session);
    expect(run_once(context, image) == expected && session.memory().total_bytes == predicted.total_bytes,
           "memory as predicted, and enough");
    expect(context.output_dims(0).shape() == std::vector<int64_t>({1, 10}), "the dims of an output");
    auto late = graphrt::zeroed<grt_run_options>();
    late.deadline_ms = 1;
    throws(
        GRT_STATUS_DEADLINE_EXCEEDED, "", [&] { context.run(late); }, "a run whose deadline is over");
    int watched = 0;
    context.set_watch([](void *user, const grt_watched *) { ++*static_cast<int *>(user); }, &watched);
    context.run();
    context.set_watch(nullptr, nullptr);
    expect(watched > 3, "steps that are watched");
    context.trim();
    expect(session.memory().activations_bytes == 0, "a context that was trimmed");
    context.cancel();
    expect(run_once(context, image) == expected, "a run after all that");
    throws(
        GRT_STATUS_INVALID_ARGUMENT, "", [&] { graphrt::state none(session); }, "a model without state");
}

static void test_lanes(const graphrt::runtime &runtime, const std::string &path,
                       const std::vector<float> &image)
{
    graphrt::session session(graphrt::model(runtime, path));
    graphrt::pool pool(session);
    const size_t lane = pool.add({&session}, graphrt::zeroed<grt_pool_options>());
    const grt_tensor in = graphrt::view(image.data(), {1, 1, 8, 8});
    auto submission = graphrt::zeroed<grt_submission>();
    submission.lane = lane;
    submission.inputs = &in;
    submission.n_inputs = 1;
    submission.priority = 3;
    graphrt::request first = pool.submit(submission);
    while (!first.wait_until(grt_clock_ms() + 50))
        ;
    expect(first.info().run_ms > 0, "figures of a request");
    graphrt::request second = std::move(first);
    expect(pool.try_submit(submission, second), "a request that finds room");
    second.wait();
    pool.replace(lane, 0, session);
    pool.submit(submission).wait();
    pool.drain();
    expect(pool.stats(lane).succeeded == 3 && pool.histogram(GRT_POOL_TOTAL, lane).count == 3,
           "counts of a lane");
    pool.cancel();
    pool.shutdown();
    throws(
        GRT_STATUS_CANCELLED, "", [&] { pool.submit(submission); }, "a pool that was shut down");
}

static void test_processes(const graphrt::runtime &runtime, const std::string &path,
                           const std::vector<float> &image, const std::vector<float> &expected)
{
    graphrt::model model(runtime, path);
    graphrt::pool pool({}, graphrt::zeroed<grt_pool_options>());
    const char *named = std::getenv("GRAPHRUN");
    auto processes = graphrt::zeroed<grt_process_options>();
    processes.program = named ? named : "./graphrun";
    processes.threads = 1;
    const size_t lane =
        pool.add_processes(model, {"cpu", "cpu"}, graphrt::zeroed<grt_pool_options>(), processes);
    const grt_tensor in = graphrt::view(image.data(), {1, 1, 8, 8});
    auto submission = graphrt::zeroed<grt_submission>();
    submission.lane = lane;
    submission.inputs = &in;
    submission.n_inputs = 1;
    submission.collect = true;
    graphrt::request request = pool.submit(submission);
    request.wait();
    const graphrt::tensor found = request.output(0);
    expect(std::vector<float>(found.values<float>(), found.values<float>() + 10) == expected,
           "the answer of a process");
    pollfd ready = {pool.fd(), POLLIN, 0};
    expect(poll(&ready, 1, 10000) == 1 && pool.take_done() == request.get() && !pool.take_done(),
           "a request that is collected");
    const grt_process_info info = pool.process(lane, 1);
    expect(info.pid > 0 && info.started == 1 && !info.lost, "about a process");
    throws(
        GRT_STATUS_INVALID_ARGUMENT, "", [&] { pool.process(lane, 2); }, "a process that there is not");
    throws(
        GRT_STATUS_IO, "", [] { graphrt::serve_process(-1); }, "no pool at the other end");
}

int main()
{
    const char *srcdir = std::getenv("srcdir");
    const std::string path = std::string(srcdir ? srcdir : ".") + "/models/digits/digits.onnx";
    graphrt::runtime runtime;
    test_errors(runtime, path);
    graphrt::context first = make_context(path);
    graphrt::context context = std::move(first);
    const std::vector<float> image = some_image(1), expected = run_once(context, image);
    expect(run_once(context, some_image(2)) != expected && run_once(context, image) == expected, "runs");
    first = make_context(path);
    expect(run_once(first, image) == expected, "an object that is assigned to");
    test_pool(runtime, path, image, expected);
    test_service(runtime, path, image, expected);
    test_lanes(runtime, path, image);
    test_processes(runtime, path, image, expected);
    std::printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
