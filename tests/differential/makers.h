/* SPDX-License-Identifier: Apache-2.0 */
/* Makers: functions that draw a random node, one for each family of ops that take the same inputs. */
#ifndef GRT_TESTS_DIFFERENTIAL_MAKERS_H
#define GRT_TESTS_DIFFERENTIAL_MAKERS_H

#include "tests/differential/buffer.h"
#include "tests/differential/draw.h"
#include "tests/differential/node.h"
#include "tools/element.h"

/* A node of any maker; ops: of these only, "Add,Conv", or NULL. False if none of them is made. */
bool make_node(node *n, const char *ops);

/* A maker of one op finds it in n->op; one of several says when to draw it from those that are wanted. */
const char *draw_op(void);
#define MAKER(name, ...) void make_##name(node *n);
#include "tests/differential/makers.def"
#undef MAKER

#endif
