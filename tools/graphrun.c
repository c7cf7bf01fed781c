/* SPDX-License-Identifier: Apache-2.0 */
/* graphrun: run, check and measure models. */
#include "tools/commands.h"
#include "tools/worker.h"

#include <stddef.h>

const char *const tool_name = "graphrun";

static const tool_command commands[] = {
    {NULL, "MODEL", "Run an ONNX model (.onnx) or a plan made by graphc (.grt), and show its outputs.",
     run_options,
     "Random floats are uniform in [0, 1); random integers and booleans are 0 or 1.\n"
     "Dims that are symbolic in the model take the value that another input gives them, else 1.",
     run_command},
    {"check", "DIR...",
     "Compare models with recorded outputs. Each DIR holds model.onnx and "
     "test_data_set_N/{input,output}_I.pb,\n"
     "or is a directory of such directories.",
     check_options,
     "One line per failure; the last line is `N passed, N failed, N skipped`.\n"
     "Outputs are compared as the official ONNX test runner does: |found - expected| <= atol + rtol * "
     "|expected|;\n"
     "types, shapes and strings exactly; NaN equals NaN.",
     check_command},
    {"bench", "MODEL...",
     "Measure latency, throughput, load phases and memory; each model in a fresh process.", bench_options,
     "Models run one after another. Percentiles are of single runs, throughput is runs per second in one "
     "context.",
     bench_command},
    {"compare", "MODEL [MODEL]",
     "Compare two models, or one on two devices, tensor by tensor: where they begin to differ, and how that "
     "grows.",
     compare_options,
     "Compared are tensors of one name, and those of steps of one op and the same nodes; the plans run as "
     "they are.\n"
     "Exit status 1: a tensor is beyond the tolerance.",
     compare_command},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    if (worker_is_meant(argc, argv))
        return worker_serve(argv);
    return options_dispatch("graphrun runs ONNX models and plans.", commands, argc, argv);
}
