/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/opened.h"

grt_session *session;
grt_context *context;

void open_on(onnx_model *m, const grt_compile_options *compile, const char *device, const char *fallback)
{
    const grt_session_options options = {.struct_size = sizeof options, .fallback = fallback};
    grt_model *model = compile ? onnx_open_plan(m, runtime, compile) : onnx_open(m, runtime);
    onnx_release(m);
    OK(grt_session_create(model, device, &options, &session));
    OK(grt_context_create(session, &context));
    grt_model_release(model);
}

void close_all(void)
{
    grt_context_release(context);
    grt_session_release(session);
}
