/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and outputs of one call: what the user gave, in the model's order. */
#ifndef GRAPHRT_PYTHON_FEED_H
#define GRAPHRT_PYTHON_FEED_H

#include "arrays.h"
#include "model.h"

/* One object for each input, in the model's order; an invalid handle where the input keeps its default.
 * `inputs` is a mapping by name, a list or tuple by position, or the one input itself. Each object is held:
 * the container may change meanwhile, by other threads or by code that converts another input. Raises
 * InvalidArgument for names that are none. */
void feed_order(const Model &model, nb::handle inputs, std::vector<nb::object> &ordered);

/* The port of that name, or its index for an int. Raises InvalidArgument that lists the names. */
size_t port_index(const std::vector<Port> &ports, nb::handle name, const char *what);

#endif
