/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/forge/forgery.h"

#include "proto/plan.pb-c.h"
#include "src/base/checked.h"
#include "src/plan/format.h"
#include "tests/differential/draw.h"
#include "tests/forge/fields.h"
#include "tests/unit/plan_sample.h"

#include <stdio.h>
#include <string.h>

static void *take(void *arena, size_t size)
{
    return grt_arena_alloc(arena, size ? size : 1);
}

static void leave(void *arena, void *data)
{
    (void)arena;
    (void)data;
}

static bool read_header(const uint8_t *bytes, size_t size, plan_header *header)
{
    if (size < PLAN_PAGE)
        return false;
    memcpy(header, bytes, sizeof *header);
    if (memcmp(header->magic, PLAN_MAGIC, sizeof header->magic) || header->n_sections > PLAN_MAX_SECTIONS)
        return false;
    for (uint32_t i = 0; i < header->n_sections; i++)
        if (header->sections[i].offset > size ||
            header->sections[i].length > size - header->sections[i].offset)
            return false;
    return true;
}

static plan_section *section_of(plan_header *header, plan_section_kind kind)
{
    for (uint32_t i = 0; i < header->n_sections; i++)
        if (header->sections[i].kind == (uint32_t)kind)
            return &header->sections[i];
    return NULL;
}

static void change(grt_arena *arena, ProtobufCMessage *message, forgery *out)
{
    static fields f;
    f.arena = arena;
    size_t length = 0;
    for (int64_t left = draw(1, 3), tries = 0; left > 0 && tries < 50; tries++) {
        f.n = 0;
        fields_collect(&f, message);
        const field one = f.at[draw(0, (int64_t)f.n - 1)];
        if (!fields_change(&f, &one))
            continue;
        left--;
        const int n = snprintf(out->what + length, sizeof out->what - length, "%s%s.%s", length ? "; " : "",
                               one.of->descriptor->short_name, one.is->name);
        length += n > 0 && (size_t)n < sizeof out->what - length ? (size_t)n : 0;
    }
}

/* The file with `section` replaced by the message, and all that stands behind it moved. */
static void build(grt_arena *arena, const uint8_t *bytes, const plan_header *header,
                  const plan_section *section, const ProtobufCMessage *message, forgery *out)
{
    const size_t length = protobuf_c_message_get_packed_size(message),
                 which = (size_t)(section - header->sections);
    plan_header made = *header;
    out->size = PLAN_PAGE;
    for (uint32_t i = 0; i < made.n_sections; i++) {
        made.sections[i].length = i == which ? length : made.sections[i].length;
        made.sections[i].offset = grt_align_up(out->size, PLAN_PAGE);
        out->size = made.sections[i].offset + made.sections[i].length;
    }
    made.file_size = out->size;
    out->bytes = grt_arena_calloc(arena, 1, out->size);
    memcpy(out->bytes, &made, sizeof made);
    for (uint32_t i = 0; i < made.n_sections; i++)
        if (i == which)
            protobuf_c_message_pack(message, out->bytes + made.sections[i].offset);
        else
            memcpy(out->bytes + made.sections[i].offset, bytes + header->sections[i].offset,
                   made.sections[i].length);
    plan_reseal(out->bytes, out->size);
}

bool forge(grt_arena *arena, const uint8_t *bytes, size_t size, forgery *out)
{
    ProtobufCAllocator allocator = {.alloc = take, .free = leave, .allocator_data = arena};
    plan_header header;
    *out = (forgery){0};
    if (!read_header(bytes, size, &header))
        return false;
    const plan_section *meta = section_of(&header, PLAN_META), *tuning = section_of(&header, PLAN_TUNING);
    const bool in_tuning = tuning && !draw(0, 15);
    const plan_section *section = in_tuning ? tuning : meta;
    ProtobufCMessage *message = NULL;
    if (section)
        message = protobuf_c_message_unpack(in_tuning ? &grt__plan__tuning__descriptor
                                                      : &grt__plan__plan__descriptor,
                                            &allocator, section->length, bytes + section->offset);
    if (!message)
        return false;
    change(arena, message, out);
    build(arena, bytes, &header, section, message, out);
    return true;
}
