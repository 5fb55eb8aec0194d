#include "choose.h"

#include "device_sampler.h"
#include "devices.h"
#include "failure.h"
#include "sampler.h"

#include "ggml-alloc.h"
#include "ggml-cpp.h"

#include <numeric>
#include <vector>

// As the target's graph does it: the logits are an input here.
static void choose_on(ggml_backend_dev_t device, const slip_sampling & sampling, const float * logits, int32_t n_vocab, int32_t n_rows,
        int32_t first_position, int32_t * tokens) {
    ggml_backend_ptr backend(ggml_backend_dev_init(device, nullptr));
    if (!backend) {
        throw slip_failure(SLIP_ERROR_DEVICE, std::string("`") + ggml_backend_dev_name(device) + "` cannot be used.",
            "Sample on the host.");
    }
    constexpr int32_t n_nodes = 128;
    ggml_context_ptr ctx(ggml_init({ ggml_tensor_overhead() * n_nodes + ggml_graph_overhead(), nullptr, true }));
    ggml_gallocr_ptr memory(ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend.get())));

    ggml_tensor * in = ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F32, n_vocab, n_rows);
    ggml_set_input(in);
    ggml_tensor * uniform = nullptr;
    const llama_out_chooser chooser = slip_device_chooser(&sampling);
    ggml_tensor * out = chooser.build(chooser.user, ctx.get(), in, &uniform);
    ggml_set_output(out);
    ggml_cgraph * graph = ggml_new_graph(ctx.get());
    ggml_build_forward_expand(graph, out);

    slip_device_check(backend.get(), graph, "sample", "Sample on the host.");
    if (!ggml_gallocr_alloc_graph(memory.get(), graph)) {
        throw slip_failure(SLIP_ERROR_MEMORY, "There is not enough memory for the logits.");
    }
    ggml_backend_tensor_set(in, logits, 0, ggml_nbytes(in));
    std::vector<llama_pos> before(n_rows); // a row's token follows the one at this position
    std::iota(before.begin(), before.end(), first_position - 1);
    chooser.set_input(chooser.user, uniform, before.data(), n_rows);
    if (ggml_backend_graph_compute(backend.get(), graph) != GGML_STATUS_SUCCESS) {
        throw slip_failure(SLIP_ERROR_DEVICE, "The device failed.");
    }
    ggml_backend_tensor_get(out, tokens, 0, ggml_nbytes(out));
}

void slip_choose_rows(ggml_backend_dev_t device, const slip_sampling & sampling, const float * logits, int32_t n_vocab, int32_t n_rows,
        int32_t first_position, int32_t * tokens) {
    if (n_vocab < 1 || n_rows < 1) {
        throw slip_failure(SLIP_ERROR_OPTION, "There are no logits.");
    }
    if (first_position < 0 || first_position > INT32_MAX - n_rows) {
        throw slip_failure(SLIP_ERROR_OPTION, "There is no position " + std::to_string(first_position) + ".");
    }
    slip_sampler sampler(sampling);
    if (sampling.verify == SLIP_VERIFY_GPU_SAMPLE && sampling.temperature > 0) {
        choose_on(device, sampling, logits, n_vocab, n_rows, first_position, tokens);
        return;
    }
    for (int32_t i = 0; i < n_rows; ++i) {
        tokens[i] = sampler.choose(logits + int64_t(i) * n_vocab, n_vocab, first_position + i);
    }
}
