/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <nanobind/stl/string.h>

namespace
{
/* 0 to 2, as graphc --level has them. */
grt_optimization level_of(int32_t level)
{
    static const grt_optimization levels[] = {GRT_OPTIMIZATION_NONE, GRT_OPTIMIZATION_BASIC,
                                              GRT_OPTIMIZATION_FULL};
    if (level < 0 || level > 2)
        raise_invalid("level is 0 to 2, not " + std::to_string(level));
    return levels[level];
}

/* "a,b" of a string or of several. */
std::string joined(const std::string &name, nb::handle value)
{
    if (PyUnicode_Check(value.ptr()))
        return nb::cast<std::string>(value);
    try {
        return nb::cast<std::string>(nb::str(",").attr("join")(value));
    } catch (const nb::python_error &) {
        throw nb::type_error((name + " is a name or a list of names").c_str());
    }
}
} // namespace

nb::object finding_to_python(const grt_finding &finding)
{
    nb::object kind = nb::module_::import_("graphrt._types").attr("Finding");
    nb::object status = nb::module_::import_("graphrt._core").attr("STATUSES")[nb::int_((int)finding.status)];
    return kind(status, finding.node, finding.op, finding.opset, finding.message);
}

const char *CompileOptions::text(nb::handle value)
{
    if (value.is_none())
        return nullptr;
    texts_.push_back(PyUnicode_Check(value.ptr()) ? nb::cast<std::string>(value) : path_of(value));
    return texts_.back().c_str();
}

/* What a callback returns; one that raises ends the call, and its exception is the caller's. */
template <typename Call> auto CompileOptions::guarded(Call call)
{
    nb::gil_scoped_acquire acquired;
    using Result = decltype(call());
    try {
        if (!raised_)
            return call();
    } catch (...) {
        raised_ = std::current_exception();
    }
    return Result(true);
}

CompileOptions::CompileOptions(const std::string &target, nb::handle keywords)
    : raw(sized<grt_compile_options>())
{
    texts_.push_back(target);
    raw.target = texts_.back().c_str();
    for (auto [key, value] : nb::cast<nb::dict>(keywords))
        set(nb::cast<std::string>(key), value);
    raw.user = this;
    /* Asked for by every call, so that an exception of another callback ends it. */
    raw.cancel = [](void *user) -> bool {
        auto *self = (CompileOptions *)user;
        return self->guarded([self] {
            return self->cancel_.is_valid() && nb::cast<bool>(self->cancel_());
        }) || self->raised_;
    };
}

void CompileOptions::set(const std::string &name, nb::handle value)
{
    if (name == "level") {
        if (!value.is_none())
            raw.optimization = level_of(nb::cast<int32_t>(value));
    } else if (name == "disable_passes" || name == "enable_passes" || name == "free_dims" ||
               name == "trust" || name == "keep_weights") {
        if (value.is_none())
            return;
        texts_.push_back(joined(name, value));
        (name == "trust"           ? raw.trust
         : name == "free_dims"     ? raw.free_dims
         : name == "keep_weights"  ? raw.keep_weights
         : name == "enable_passes" ? raw.enable_passes
                                   : raw.disable_passes) = texts_.back().c_str();
    } else if (name == "state") {
        if (value.is_none())
            return;
        std::string pairs;
        for (auto [output, input] : nb::cast<nb::dict>(value))
            pairs += nb::cast<std::string>(output) + "=" + nb::cast<std::string>(input) + "\n";
        texts_.push_back(pairs);
        raw.state = texts_.back().c_str();
    } else if (name == "target") {
        if (!value.is_none())
            raw.target = text(value);
    } else if (name == "precision") {
        raw.precision = text(value);
    } else if (name == "choices") {
        raw.choices = text(value);
    } else if (name == "allow_symlinks") {
        raw.allow_symlinks = nb::cast<bool>(value);
    } else if (name == "external_weights") {
        raw.external_weights = nb::cast<bool>(value);
    } else if (name == "strict") {
        raw.strict = nb::cast<bool>(value);
    } else if (name == "shapes") {
        set_shapes(value);
    } else if (name == "external_data") {
        set_external_data(value);
    } else if (name == "progress") {
        progress_ = nb::borrow(value);
        raw.progress = [](void *user, const char *phase, double fraction) {
            auto *self = (CompileOptions *)user;
            self->guarded([&] { return self->progress_(phase, fraction), true; });
        };
    } else if (name == "cancel") {
        cancel_ = nb::borrow(value);
    } else if (name == "warning") {
        warning_ = nb::borrow(value);
        raw.warning = [](void *user, const grt_finding *finding) {
            auto *self = (CompileOptions *)user;
            self->guarded([&] { return self->warning_(finding_to_python(*finding)), true; });
        };
    } else {
        throw nb::type_error(("there is no option '" + name + "'").c_str());
    }
}

std::vector<grt_input_shape> shapes_of(nb::handle shapes, std::deque<std::string> &names)
{
    std::vector<grt_input_shape> list;
    if (shapes.is_none())
        return list;
    for (auto [name, dims] : nb::cast<nb::dict>(shapes)) {
        grt_input_shape shape = sized<grt_input_shape>();
        names.push_back(nb::cast<std::string>(name));
        shape.input = names.back().c_str();
        for (nb::handle dim : dims) {
            if (shape.rank == GRT_MAX_RANK)
                raise_invalid("shapes: a tensor has at most " + std::to_string(GRT_MAX_RANK) + " dims");
            shape.dims[shape.rank++] = nb::cast<int64_t>(dim);
        }
        list.push_back(shape);
    }
    return list;
}

void CompileOptions::set_shapes(nb::handle shapes)
{
    shapes_ = shapes_of(shapes, texts_);
    raw.shapes = shapes_.data();
    raw.n_shapes = shapes_.size();
}

void CompileOptions::set_external_data(nb::handle files)
{
    if (files.is_none())
        return;
    for (auto [location, content] : nb::cast<nb::dict>(files)) {
        grt_external_data file = sized<grt_external_data>();
        file.location = text(location);
        buffers_.emplace_back(content);
        file.data = buffers_.back().data();
        file.size = buffers_.back().size();
        external_data_.push_back(file);
    }
    raw.external_data = external_data_.data();
    raw.n_external_data = external_data_.size();
}

void CompileOptions::finish(grt_status status)
{
    if (raised_)
        std::rethrow_exception(raised_);
    check(status);
}
