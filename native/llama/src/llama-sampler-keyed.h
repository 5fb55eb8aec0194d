// Random numbers of a sampler by seed and position.

#pragma once

#include "llama.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

// LLAMA_SPEC_GPU_SAMPLE: what is drawn behind a position depends on nothing but it and the seed. So drafts that
// are rejected consume nothing, and the text of a seed is the same with drafts, without, and at any length of them.
static bool llama_sampler_dist_is_keyed() {
    static const char * LLAMA_SPEC_GPU_SAMPLE = getenv("LLAMA_SPEC_GPU_SAMPLE");
    return LLAMA_SPEC_GPU_SAMPLE && atoi(LLAMA_SPEC_GPU_SAMPLE) != 0;
}

// of the token behind pos, in (0, 1), as Slipstream's engine draws it (slip_uniform), by Philox4x32-10: Salmon et al.,
// "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011
static float llama_sampler_dist_keyed(uint32_t seed, llama_pos pos) {
    uint32_t x[4] = { (uint32_t) pos + 1, 0, 0, 1 };
    uint32_t k[2] = { seed, 0 };

    for (int i = 0; i < 10; ++i) {
        const uint64_t a = (uint64_t) 0xD2511F53 * x[0];
        const uint64_t b = (uint64_t) 0xCD9E8D57 * x[2];

        const uint32_t y[4] = {
            (uint32_t) (b >> 32) ^ x[1] ^ k[0], (uint32_t) b,
            (uint32_t) (a >> 32) ^ x[3] ^ k[1], (uint32_t) a,
        };
        memcpy(x, y, sizeof(x));

        k[0] += 0x9E3779B9;
        k[1] += 0xBB67AE85;
    }

    return ((x[0] >> 9) + 0.5f) * (1.0f / (1 << 23));
}

// The sampler's order would say which token a number stands for: in the order of the ids it is the engine's.
static void llama_sampler_dist_order(ggml_context * ctx, llama_sampler_data * data) {
    ggml_tensor * ids   = ggml_reshape_1d(ctx, data->candidates, ggml_nelements(data->candidates));
    ggml_tensor * order = ggml_argsort(ctx, ggml_cast(ctx, ids, GGML_TYPE_F32), GGML_SORT_ORDER_ASC);

    data->candidates = ggml_get_rows(ctx, ggml_reshape_2d(ctx, ids, 1, ids->ne[0]), order);
    data->logits     = ggml_reshape_1d(ctx, ggml_get_rows(ctx, ggml_reshape_2d(ctx, data->logits, 1, ids->ne[0]), order), ids->ne[0]);
}
