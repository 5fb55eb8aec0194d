#include "device_sampler.h"

#include "philox.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace {

// Selects from each column of `from` [n, rows] the entries `at` [m, rows] -> [m, rows].
ggml_tensor * pick(ggml_context * ctx, ggml_tensor * from, ggml_tensor * at) {
    ggml_tensor * column = ggml_reshape_3d(ctx, from, 1, from->ne[0], from->ne[1]);
    return ggml_reshape_2d(ctx, ggml_get_rows(ctx, column, at), at->ne[0], at->ne[1]);
}

ggml_tensor * as_index(ggml_context * ctx, ggml_tensor * number) {
    return ggml_cast(ctx, number, GGML_TYPE_I32);
}

// Index of the largest entry of each column [n, rows], of equals the first -> I32 [1, rows].
ggml_tensor * first_of_largest(ggml_context * ctx, ggml_tensor * x) {
    return ggml_reshape_2d(ctx, ggml_argmax(ctx, x), 1, x->ne[1]);
}

// Last entry of each column [n, rows] -> [1, rows].
ggml_tensor * last(ggml_context * ctx, ggml_tensor * x) {
    return ggml_cont(ctx, ggml_view_2d(ctx, x, 1, x->ne[1], x->nb[1], (x->ne[0] - 1) * x->nb[0]));
}

// The smallest logit that top_p leaves -> [1, rows].
ggml_tensor * least_of_top_p(ggml_context * ctx, ggml_tensor * logits, float top_p) {
    // One NaN makes a row of them (its probabilities have no sum): a sort among which some are has no order to keep to.
    ggml_tensor * nothing = ggml_scale(ctx, ggml_sum_rows(ctx, ggml_soft_max(ctx, logits)), 0);
    logits = ggml_add(ctx, logits, nothing);
    ggml_tensor * sorted = pick(ctx, logits, ggml_argsort(ctx, logits, GGML_SORT_ORDER_DESC));
    ggml_tensor * probs  = ggml_soft_max(ctx, sorted);
    ggml_tensor * before = ggml_sub(ctx, ggml_cumsum(ctx, probs), probs);
    // A token stays while those before it have not reached top_p: 1 where top_p - before > 0.
    ggml_tensor * kept = ggml_step(ctx, ggml_scale_bias(ctx, before, -1, top_p));
    // The first stays always, but where all are NaN none does: an index of -1 would end the process.
    ggml_tensor * others = ggml_relu(ctx, ggml_scale_bias(ctx, ggml_sum_rows(ctx, kept), 1, -1));
    return pick(ctx, sorted, as_index(ctx, others));
}

ggml_tensor * build(const void * user, ggml_context * ctx, ggml_tensor * logits, ggml_tensor ** input) {
    const auto & options = *static_cast<const slip_sampling *>(user);
    const int64_t n_rows = logits->ne[1];

    ggml_tensor * u = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 1, n_rows);
    ggml_set_input(u);
    *input = u;

    ggml_tensor * best_id = first_of_largest(ctx, logits);
    ggml_tensor * best    = pick(ctx, logits, best_id);

    ggml_tensor * ids = nullptr; // of the candidates, ascending; all of the vocabulary without top_k
    ggml_tensor * any = nullptr; // [1, rows] 1 if top_k leaves any
    if (options.top_k > 0 && options.top_k < logits->ne[0]) {
        // What is likelier than the one behind the k likeliest: which of equals a device brings does not count.
        ids = ggml_top_k(ctx, logits, options.top_k + 1);
        ids = pick(ctx, ids, ggml_argsort(ctx, ggml_cast(ctx, ids, GGML_TYPE_F32), GGML_SORT_ORDER_ASC));
        logits = pick(ctx, logits, ids);
        ggml_tensor * behind = pick(ctx, logits, first_of_largest(ctx, ggml_neg(ctx, logits)));
        ggml_tensor * kept   = ggml_step(ctx, ggml_sub(ctx, logits, behind));
        logits = ggml_add(ctx, logits, ggml_scale_bias(ctx, kept, 1e30f, -1e30f));
        any    = ggml_step(ctx, ggml_sub(ctx, best, behind));
    }

    ggml_tensor * least = nullptr; // logit below which a candidate falls away
    if (options.top_p < 1) {
        least = least_of_top_p(ctx, logits, options.top_p);
    }
    if (options.min_p > 0) {
        ggml_tensor * floor = ggml_scale_bias(ctx, best, 1, std::log(options.min_p));
        least = least ? ggml_add(ctx, least, ggml_relu(ctx, ggml_sub(ctx, floor, least))) : floor;
    }

    // Relative to the best, so that even the smallest temperature gives no infinity.
    const float heat = 1 / std::max(options.temperature, 1e-30f);
    ggml_tensor * weights = ggml_soft_max(ctx, ggml_scale(ctx, ggml_sub(ctx, logits, best), heat));
    if (least) {
        ggml_tensor * fallen = ggml_step(ctx, ggml_neg(ctx, ggml_sub(ctx, logits, least)));
        weights = ggml_sub(ctx, weights, ggml_mul(ctx, weights, fallen));
    }

    // The first whose sum reaches a share of the whole and that weighs anything: a device adds up in parallel, and its
    // sums need not grow from one to the next. Should none reach it, the heaviest.
    ggml_tensor * sums    = ggml_cumsum(ctx, weights);
    ggml_tensor * missed  = ggml_step(ctx, ggml_neg(ctx, ggml_sub(ctx, sums, ggml_mul(ctx, last(ctx, sums), u))));
    ggml_tensor * reached = ggml_mul(ctx, ggml_step(ctx, weights), ggml_scale_bias(ctx, missed, -1, 1));
    ggml_tensor * chosen  = first_of_largest(ctx, ggml_add(ctx, reached, ggml_scale(ctx, weights, 0x1p-30f)));
    if (ids) {
        // Where all candidates are equals there is none: then the first of the likeliest.
        ggml_tensor * first = ggml_cast(ctx, best_id, GGML_TYPE_F32);
        ggml_tensor * other = ggml_cast(ctx, pick(ctx, ids, chosen), GGML_TYPE_F32);
        chosen = as_index(ctx, ggml_add(ctx, first, ggml_mul(ctx, ggml_sub(ctx, other, first), any)));
    }
    return ggml_reshape_1d(ctx, chosen, n_rows);
}

void set_input(const void * user, ggml_tensor * input, const llama_pos * pos, int32_t n_rows) {
    const auto & options = *static_cast<const slip_sampling *>(user);
    std::vector<float> u(n_rows);
    std::transform(pos, pos + n_rows, u.begin(), [&](llama_pos p) { return slip_uniform(options.seed, p + 1); });
    ggml_backend_tensor_set(input, u.data(), 0, u.size() * sizeof(float));
}

} // namespace

float slip_uniform(uint64_t seed, int32_t position) {
    // The last counter word sets these numbers apart from those of slip_sampler.
    const uint32_t word = slip_philox({ uint32_t(position), 0, 0, 1 }, seed)[0];
    return ((word >> 9) + 0.5f) * 0x1p-23f;
}

llama_out_chooser slip_device_chooser(const slip_sampling * options) {
    llama_out_chooser chooser;
    chooser.build     = build;
    chooser.set_input = set_input;
    chooser.user      = options;
    // What the graph's shape and constants depend on (FNV-1a); the seed is data.
    chooser.key = 0xcbf29ce484222325;
    const float values[] = { options->temperature, float(options->top_k), options->top_p, options->min_p };
    unsigned char bytes[sizeof(values)];
    std::memcpy(bytes, values, sizeof(values));
    for (const unsigned char byte : bytes) {
        chooser.key = (chooser.key ^ byte) * 0x100000001b3;
    }
    return chooser;
}
