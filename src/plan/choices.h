/* SPDX-License-Identifier: Apache-2.0 */
/* The TUNING section of a plan file: the choices that come with the plan. `made` and `rejected` are not kept:
 * equal choices give equal bytes, whenever they were made. */
#ifndef GRT_SRC_PLAN_CHOICES_H
#define GRT_SRC_PLAN_CHOICES_H

#include "src/plan/plan.h"

/* TUNING bytes to plan->choices and back. Choices to encode must be sorted, each key once; *out_data is
 * malloc'ed. Errors: INVALID_PLAN for bytes, INVALID_ARGUMENT for choices. */
grt_status plan_choices_decode(const char *path, const void *data, size_t size, grt_plan *plan);
grt_status plan_choices_encode(const grt_choice *choices, size_t n, void **out_data, size_t *out_size);

/* A choice replaces that of an equal key, the others stay, all are sorted by key. One with `rejected` set
 * removes that of its key. *out_choices is malloc'ed and points to what the choices point to. Errors:
 * INVALID_ARGUMENT for choices that no plan can hold. */
grt_status grt_choices_merge(const grt_choice *old, size_t n_old, const grt_choice *choices, size_t n,
                             grt_choice **out_choices, size_t *out_n);

#endif
