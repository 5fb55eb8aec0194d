#include "choose.h"

#include "device_sampler.h"
#include "devices.h"
#include "failure.h"
#include "sampler.h"

#include "ggml-alloc.h"
#include "ggml-cpp.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

// As the target's graph does it: the logits are an input here.
static void choose_on(ggml_backend_dev_t device, slip_device_sampler & sampler, const slip_past & past, const float * logits,
        int32_t n_vocab, int32_t n_rows, int32_t first_position, int32_t * tokens) {
    ggml_backend_ptr backend(ggml_backend_dev_init(device, nullptr));
    if (!backend) {
        throw slip_failure(SLIP_ERROR_DEVICE, std::string("`") + ggml_backend_dev_name(device) + "` cannot be used.",
            "Sample on the host.");
    }
    constexpr int32_t n_nodes = 256;
    ggml_context_ptr ctx(ggml_init({ ggml_tensor_overhead() * n_nodes + ggml_graph_overhead(), nullptr, true }));
    ggml_gallocr_ptr memory(ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend.get())));

    ggml_tensor * in = ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F32, n_vocab, n_rows);
    ggml_set_input(in);
    ggml_tensor * pass = past.block ? ggml_new_tensor_1d(ctx.get(), GGML_TYPE_I32, n_rows) : nullptr;
    if (pass) {
        ggml_set_input(pass);
        ggml_set_name(pass, slip_device_sampler::k_pass);
    }
    sampler.prepare(past.before, past.n_before, n_rows, pass);
    ggml_tensor * given = nullptr;
    const llama_out_chooser chooser = sampler.chooser();
    ggml_tensor * out = chooser.build(chooser.user, ctx.get(), in, &given);
    ggml_set_output(out);
    ggml_cgraph * graph = ggml_new_graph(ctx.get());
    ggml_build_forward_expand(graph, out);

    slip_device_check(backend.get(), graph, "sample", "Sample on the host.");
    if (!ggml_gallocr_alloc_graph(memory.get(), graph)) {
        throw slip_failure(SLIP_ERROR_MEMORY, "There is not enough memory for the logits.");
    }
    ggml_backend_tensor_set(in, logits, 0, ggml_nbytes(in));
    if (pass && pass->buffer) { // none where no penalty looks at it
        ggml_backend_tensor_set(pass, past.before + past.n_before - 1, 0, sizeof(int32_t));
        ggml_backend_tensor_set(pass, past.block, sizeof(int32_t), (n_rows - 1) * sizeof(int32_t));
    }
    std::vector<llama_pos> before(n_rows); // a row's token follows the one at this position
    std::iota(before.begin(), before.end(), first_position - 1);
    if (given) {
        chooser.set_input(chooser.user, given, before.data(), n_rows);
    }
    if (ggml_backend_graph_compute(backend.get(), graph) != GGML_STATUS_SUCCESS) {
        throw slip_failure(SLIP_ERROR_DEVICE, "The device failed.");
    }
    ggml_backend_tensor_get(out, tokens, 0, ggml_nbytes(out));
}

static void check_past(const slip_past & past, int32_t n_vocab, int32_t n_rows) {
    const auto known = [n_vocab](const int32_t * tokens, int32_t n) {
        return n == 0 || (tokens && std::all_of(tokens, tokens + n, [n_vocab](int32_t t) { return t >= 0 && t < n_vocab; }));
    };
    if (past.n_before < (past.block ? 1 : 0) || !known(past.before, past.n_before) || (past.block && !known(past.block, n_rows - 1))) {
        throw slip_failure(SLIP_ERROR_OPTION, "The tokens before the rows cannot be used.");
    }
}

void slip_choose_rows(ggml_backend_dev_t device, const slip_sampling & sampling, const slip_past & past, const float * logits,
        int32_t n_vocab, int32_t n_rows, int32_t first_position, int32_t * tokens) {
    if (n_vocab < 1 || n_rows < 1) {
        throw slip_failure(SLIP_ERROR_OPTION, "There are no logits.");
    }
    if (first_position < 0 || first_position > INT32_MAX - n_rows) {
        throw slip_failure(SLIP_ERROR_OPTION, "There is no position " + std::to_string(first_position) + ".");
    }
    check_past(past, n_vocab, n_rows);
    slip_sampler sampler(sampling, n_vocab, /*watches*/ true);
    if (slip_device_sampler * const on_device = sampler.device()) {
        choose_on(device, *on_device, past, logits, n_vocab, n_rows, first_position, tokens);
        return;
    }
    std::vector<int32_t> before(past.before, past.before + past.n_before);
    for (int32_t i = 0; i < n_rows; ++i) {
        if (past.block && i > 0) {
            before.push_back(past.block[i - 1]);
        }
        const auto n_before = static_cast<int32_t>(before.size());
        tokens[i] = sampler.choose(logits + int64_t(i) * n_vocab, before.data(), n_before, first_position + i);
    }
}
