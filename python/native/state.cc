/* SPDX-License-Identifier: Apache-2.0 */
#include "state.h"

namespace
{
/* The calling thread has the state, or InvalidArgument is raised. */
class Held
{
  public:
    explicit Held(State &state) : lock_(state.mutex(), std::try_to_lock)
    {
        if (!lock_.owns_lock())
            raise_invalid("another thread is in a run or a call with this state");
    }

  private:
    std::unique_lock<std::mutex> lock_;
};

grt_state_info info_of(grt_state *state, size_t index)
{
    auto info = sized<grt_state_info>();
    check(grt_state_get(state, index, &info));
    return info;
}
} // namespace

State::State(nb::object session, const Model &model, grt_session *on, nb::handle pairs, nb::handle initial,
             bool in_place)
    : session_object_(std::move(session))
{
    std::vector<grt_state_pair> list;
    std::deque<Operand> contents;
    const nb::dict begin = initial.is_none() ? nb::dict() : nb::cast<nb::dict>(initial);
    if (!pairs.is_none())
        for (auto [output, input] : nb::cast<nb::dict>(pairs)) {
            auto pair = sized<grt_state_pair>();
            pair.output = model.outputs[port_index(model.outputs, output, "output")].name.c_str();
            const Port &port = model.inputs[port_index(model.inputs, input, "input")];
            pair.input = port.name.c_str();
            pair.in_place = in_place;
            if (begin.contains(port.key)) {
                contents.emplace_back();
                contents.back().read(begin[port.key], port.info.dtype);
                pair.initial = &contents.back().tensor;
            }
            list.push_back(pair);
        }
    grt_state *state = nullptr;
    grt_status status;
    {
        nb::gil_scoped_release released;
        status = grt_state_create(on, list.data(), list.size(), &state);
    }
    check(status);
    state_.reset(state);
    for (size_t i = 0; i < grt_state_count(state); i++) {
        const grt_state_info info = info_of(state, i);
        inputs_.push_back(port_index(model.inputs, nb::str(info.input), "input"));
        outputs_.push_back(port_index(model.outputs, nb::str(info.output), "output"));
    }
}

void State::reset()
{
    Held held(*this);
    nb::gil_scoped_release released;
    const grt_status status = grt_state_reset(get());
    nb::gil_scoped_acquire acquired;
    check(status);
}

nb::dict State::save()
{
    Held held(*this);
    nb::dict content;
    for (size_t i = 0; i < grt_state_count(get()); i++) {
        grt_value *value = nullptr;
        check(grt_state_save(get(), i, &value));
        OwnedValue owned(value);
        content[info_of(get(), i).input] = value_to_python(value);
    }
    return content;
}

void State::restore(nb::dict content)
{
    Held held(*this);
    for (auto [name, array] : content) {
        size_t at = 0;
        while (at < grt_state_count(get()) && nb::cast<std::string>(name) != info_of(get(), at).input)
            at++;
        if (at == grt_state_count(get()))
            raise_invalid("the state has no input '" + nb::cast<std::string>(name) + "'");
        Operand operand;
        operand.read(array, info_of(get(), at).tensor.dtype);
        check(grt_state_restore(get(), at, &operand.tensor));
    }
}

void State::copy_from(State &other)
{
    if (&other == this)
        return;
    Held held(*this), others(other);
    check(grt_state_copy(get(), other.get()));
}

nb::class_<State> state_bind(nb::module_ &module)
{
    nb::class_<State> states(
        module, "State",
        "Outputs of one run that are inputs of the next, such as the rows of a recurrent model: "
        "they stay on the device. Give one to\n"
        "`state` of Session.run, a run at a time; each stream has its own.");
    states.def("reset", &State::reset, "Everything back to the initial content.")
        .def("save", &State::save, nb::sig("def save(self) -> dict[str, typing.Any]"),
             "The content by input, as new arrays.")
        .def("restore", &State::restore, nb::arg("content"),
             nb::sig("def restore(self, content: dict[str, typing.Any]) -> None"),
             "Make arrays by input the content, of any dims that the input takes.")
        .def("copy_from", &State::copy_from, nb::arg("other"),
             nb::sig("def copy_from(self, other: State) -> None"),
             "Take the content of a state with the same pairs, of any session of the model: a fork of a "
             "stream, "
             "or a move to another device.");
    return states;
}
