/* SPDX-License-Identifier: Apache-2.0 */
/* A plan file that another one is made from: all its sections but one stay as they are, byte for byte. */
#ifndef GRT_SRC_PLAN_SOURCE_H
#define GRT_SRC_PLAN_SOURCE_H

#include "src/base/file_map.h"
#include "src/plan/format.h"

typedef struct plan_source {
    const char *path;
    grt_file_map map;
    int lock; /* of the directory, while weights lie beside the plan; -1: none */
    grt_plan *plan;
} plan_source;

/* With all checksums checked; plan_source_close in any case. Weights beside it stay there meanwhile. */
grt_status plan_source_open(const char *path, plan_source *out_source);
void plan_source_close(plan_source *source);
/* The plan at out_path, which may be that of the source: it is replaced by rename, so existing mappings stay
 * valid. `data` takes the place of the section of this kind, size 0: there will be none. A signature does not
 * outlive a change of another section. A plan with weights in a file of their own has to stay in its
 * directory. Errors: IO, INVALID_PLAN, INVALID_ARGUMENT. */
grt_status plan_source_write(const plan_source *source, const char *out_path, plan_section_kind kind,
                             const void *data, size_t size);
/* A plan like the one at plan_path with these choices merged into its own (grt_choices_merge); all else is
 * the same byte for byte. out_path may be plan_path. Errors: as above, INVALID_ARGUMENT for choices that no
 * plan can hold. */
grt_status plan_source_write_choices(const char *plan_path, const char *out_path, const grt_choice *choices,
                                     size_t n);

#endif
