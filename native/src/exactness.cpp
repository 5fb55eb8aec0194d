// Does a row's bits depend on the rows beside it? Asked of the device itself, with this pair's weights.

#include "pair.h"

#include "failure.h"

#include "llama-ext.h"
#include "llama.h"

#include <algorithm>
#include <cstring>
#include <vector>

// Behind one context: a token at a time, then each width from the same state, bit by bit.
slip_exactness slip_pair::probe_exact() {
    llama_context * ctx = models_.ctx_target.get();
    const int32_t n_vocab   = llama_vocab_n_tokens(vocab());
    const int32_t most      = std::min(models_.shape.rows(), static_cast<int32_t>(llama_n_ubatch(ctx)) - 1);
    // Long contexts take other ways through attention. Reading one is nothing to a GPU.
    const int32_t n_context = std::min(models_.on_gpu() ? 1000 : 64, models_.n_ctx - most);
    if (n_context < 1 || most < 2) {
        throw slip_failure(SLIP_ERROR_CONTEXT, "A context of " + std::to_string(models_.n_ctx) + " tokens has no room for the probe.",
            "Choose a larger context.");
    }
    std::vector<llama_token> tokens(n_context + most);
    for (int32_t i = 0; i < static_cast<int32_t>(tokens.size()); ++i) {
        tokens[i] = static_cast<llama_token>((2654435761u * static_cast<uint32_t>(i + 1) >> 8) % static_cast<uint32_t>(n_vocab));
    }

    reset();
    set_drafting(false);
    prefill(tokens.data(), n_context, false);
    keep_checkpoint();
    std::vector<float> alone(static_cast<size_t>(most) * n_vocab), beside(alone.size());
    for (int32_t i = 0; i < most; ++i) {
        throw_if_cancelled();
        target_pass(tokens.data() + n_context + i, 1, 1);
        read_logits(0, 1, alone.data() + static_cast<size_t>(i) * n_vocab);
    }

    slip_exactness out = {};
    out.size   = sizeof(out);
    out.exact  = 1;
    out.widest = most;
    for (int32_t width = 2; width <= most && out.exact; ++width) {
        throw_if_cancelled();
        if (!restore_checkpoint()) {
            throw slip_failure(SLIP_ERROR_INTERNAL, "The state could not be restored.");
        }
        target_pass(tokens.data() + n_context, width, width);
        read_logits(0, width, beside.data());
        if (std::memcmp(beside.data(), alone.data(), static_cast<size_t>(width) * n_vocab * sizeof(float)) != 0) {
            out.exact = 0;
            out.width = width;
        }
    }
    reset();
    return out;
}
