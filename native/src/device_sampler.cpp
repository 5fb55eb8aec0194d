#include "device_sampler.h"

#include "philox.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// Selects from each column of `from` [n, rows] the entries `at` [m, rows] -> [m, rows].
ggml_tensor * pick(ggml_context * ctx, ggml_tensor * from, ggml_tensor * at) {
    ggml_tensor * column = ggml_reshape_3d(ctx, from, 1, from->ne[0], from->ne[1]);
    return ggml_reshape_2d(ctx, ggml_get_rows(ctx, column, at), at->ne[0], at->ne[1]);
}

// `into` [n, rows] with `values` [m, rows] in the places `at` [m, rows]; `into` itself changes. The same place may come
// more than once, with the same value.
ggml_tensor * put(ggml_context * ctx, ggml_tensor * into, ggml_tensor * values, ggml_tensor * at) {
    ggml_tensor * column = ggml_reshape_3d(ctx, into, 1, into->ne[0], into->ne[1]);
    ggml_tensor * those  = ggml_reshape_3d(ctx, values, 1, values->ne[0], values->ne[1]);
    return ggml_reshape_2d(ctx, ggml_set_rows(ctx, column, those, at), into->ne[0], into->ne[1]);
}

ggml_tensor * as_index(ggml_context * ctx, ggml_tensor * number) {
    return ggml_cast(ctx, number, GGML_TYPE_I32);
}

// [n] -> [n, rows]
ggml_tensor * for_rows(ggml_context * ctx, ggml_tensor * x, int64_t n_rows) {
    return ggml_repeat_4d(ctx, x, x->ne[0], n_rows, 1, 1);
}

// For each token of `to` [n] the sum of the weights [m, rows] of those of `from` [m] that are the same -> [n, rows].
// No matrix product, which a device may round: sums of small integers are exact.
ggml_tensor * sum_of_same(ggml_context * ctx, ggml_tensor * from, ggml_tensor * to, ggml_tensor * weights) {
    const int64_t m = from->ne[0], n = to->ne[0], n_rows = weights->ne[1];
    ggml_tensor * distance = ggml_sub(ctx, ggml_repeat_4d(ctx, from, m, n, 1, 1), ggml_reshape_2d(ctx, to, 1, n));
    ggml_tensor * same     = ggml_scale_bias(ctx, ggml_step(ctx, ggml_sqr(ctx, distance)), -1, 1);
    ggml_tensor * weighted = ggml_mul(ctx, ggml_repeat_4d(ctx, same, m, n, n_rows, 1), ggml_reshape_3d(ctx, weights, m, 1, n_rows));
    return ggml_reshape_2d(ctx, ggml_sum_rows(ctx, weighted), n, n_rows);
}

// Sum of each column [n, rows] -> [1, rows]. A device sums up a column by one of its many processors, so a long one is
// summed up in parts first.
ggml_tensor * sum_of_column(ggml_context * ctx, ggml_tensor * x) {
    constexpr int64_t n_parts = 64;
    if (x->ne[0] % n_parts == 0) {
        ggml_tensor * parts = ggml_sum_rows(ctx, ggml_reshape_2d(ctx, x, x->ne[0] / n_parts, n_parts * x->ne[1]));
        x = ggml_reshape_2d(ctx, parts, n_parts, x->ne[1]);
    }
    return ggml_sum_rows(ctx, x);
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

// `chosen` I32 [rows], but LLAMA_TOKEN_NULL for each row of `logits` [n, rows] that holds NaN or infinity, or nothing above
// minus infinity: whatever is chosen there is the largest of the others, or none of them.
ggml_tensor * unless_not_finite(ggml_context * ctx, ggml_tensor * logits, ggml_tensor * chosen) {
    const int64_t n_rows = logits->ne[1];
    // What is chosen from nothing may be no index: one that is none would be read anywhere.
    ggml_tensor * token = ggml_cast(ctx, chosen, GGML_TYPE_F32);
    ggml_tensor * at    = ggml_clamp(ctx, token, 0, float(logits->ne[0] - 1));
    ggml_tensor * its   = pick(ctx, logits, as_index(ctx, ggml_reshape_2d(ctx, at, 1, n_rows)));
    // The sum of the others has what is no number too (so has one beyond all numbers). Minus infinity is a logit that is
    // never chosen; where it is, the difference is NaN.
    ggml_tensor * others = ggml_reshape_1d(ctx, ggml_sub(ctx, sum_of_column(ctx, logits), its), n_rows);
    ggml_tensor * valid  = ggml_step(ctx, ggml_scale_bias(ctx, others, -0x1p-126f, 5));
    token = ggml_scale_bias(ctx, token, 1, -float(LLAMA_TOKEN_NULL));
    return as_index(ctx, ggml_scale_bias(ctx, ggml_mul(ctx, token, valid), 1, LLAMA_TOKEN_NULL));
}

size_t power_of_two(size_t least) {
    size_t n = 1;
    while (n < least) {
        n *= 2;
    }
    return n;
}

} // namespace

slip_device_sampler::slip_device_sampler(const slip_sampling & options, const slip_penalties & penalties, int32_t n_vocab, bool watches) :
    options_(options), penalties_(penalties), n_vocab_(n_vocab), watches_(watches),
    greedy_(options.verify == SLIP_VERIFY_GREEDY || options.temperature == 0) {
    options_.biases = nullptr; // copied with the penalties
}

void slip_device_sampler::prepare(const int32_t * before, int32_t n_before, int32_t n_rows, bool block) {
    n_rows_ = n_rows;
    block_  = block && n_rows > 1;
    if (!penalties_.count()) {
        return;
    }
    slots_.resize(n_vocab_, -1);
    const int32_t n_window = penalties_.window(n_before);
    const int32_t * const start = before + (n_before - n_window);
    size_t n = 0; // the graph's shape depends on the size of ids_: it only grows, and seldom
    for (int32_t i = 0; i < n_window; ++i) {
        if (slots_[start[i]] < 0) {
            slots_[start[i]] = static_cast<int32_t>(n);
            ids_.resize(std::max(ids_.size(), n + 1));
            ids_[n++] = start[i];
        }
    }
    const size_t usual = std::min<size_t>(64, penalties_.last_n < 0 ? 64 : penalties_.last_n);
    ids_.resize(std::min<size_t>(n_vocab_, power_of_two(std::max(usual, ids_.size()))));
    if (n < ids_.size()) {
        const auto none = std::find(slots_.begin(), slots_.end(), -1);
        std::fill(ids_.begin() + n, ids_.end(), static_cast<int32_t>(none - slots_.begin()));
    }

    const size_t m = ids_.size();
    counts_.assign(m * n_rows, 0);
    for (int32_t i = 0; i < n_window; ++i) {
        ++counts_[slots_[start[i]]];
    }
    for (int32_t row = 1; row < n_rows; ++row) {
        float * const counts = counts_.data() + row * m;
        std::copy(counts - m, counts, counts);
        // With each token of the block the window's oldest one leaves it, once it is full.
        const int32_t oldest = row - 1 - (penalties_.last_n - n_window);
        if (block_ && penalties_.last_n > 0 && oldest >= 0 && oldest < n_window) {
            --counts[slots_[start[oldest]]];
        }
    }
    for (size_t i = 0; i < n; ++i) {
        slots_[ids_[i]] = -1;
    }
}

slip_device_sampler::layout::layout(const slip_device_sampler & sampler, int64_t n_rows, int64_t n_block) {
    constexpr size_t k_aligned = 64; // 256 bytes: where any device can begin to read
    size = 0;
    const auto take = [this](size_t n) {
        const size_t at = size;
        size += (n + k_aligned - 1) / k_aligned * k_aligned;
        return at;
    };
    uniform  = take(sampler.greedy_ ? 0 : n_rows);
    bias_ids = take(sampler.penalties_.biases.size());
    biases   = take(sampler.penalties_.biases.size());
    ids      = take(sampler.ids_.size());
    counts   = take(sampler.ids_.size() * n_rows);
    mask     = take(sampler.penalties_.count() ? n_block * n_rows : 0);
}

ggml_tensor * slip_device_sampler::build(const void * user, ggml_context * ctx, ggml_tensor * logits, ggml_tensor ** input) {
    const auto & self = *static_cast<const slip_device_sampler *>(user);
    const int64_t n_rows = logits->ne[1];
    if (n_rows == 0) { // of a prompt's first parts nothing is chosen
        return ggml_argmax(ctx, logits);
    }
    const layout parts(self, n_rows, self.block_ ? n_rows - 1 : 0);
    ggml_tensor * given = nullptr;
    if (parts.size > 0) {
        given = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, parts.size);
        ggml_set_input(given);
        *input = given;
    }
    ggml_tensor * from = logits;
    if (self.penalties_.any()) {
        given = ggml_cont(ctx, given); // whole to the device, not part by part
        from  = self.penalise(ctx, logits, given);
    }
    ggml_tensor * chosen = self.greedy_ ? ggml_argmax(ctx, from)
        : self.draw(ctx, from, ggml_view_2d(ctx, given, 1, n_rows, sizeof(float), parts.uniform * sizeof(float)));
    return self.watches_ ? unless_not_finite(ctx, logits, chosen) : chosen;
}

ggml_tensor * slip_device_sampler::penalise(ggml_context * ctx, ggml_tensor * logits, ggml_tensor * input) const {
    const int64_t n_rows = logits->ne[1], m = ids_.size(), n_biases = penalties_.biases.size();
    const int64_t n_block = block_ ? n_rows - 1 : 0;
    const layout parts(*this, n_rows, n_block);
    const auto part = [&](size_t at, int64_t n0, int64_t n1) {
        return ggml_view_2d(ctx, input, n0, n1, n0 * sizeof(float), at * sizeof(float));
    };
    logits = ggml_cont(ctx, logits); // others read them as the model gave them

    if (n_biases > 0) {
        ggml_tensor * at = as_index(ctx, for_rows(ctx, part(parts.bias_ids, n_biases, 1), n_rows));
        logits = put(ctx, logits, ggml_add(ctx, pick(ctx, logits, at), part(parts.biases, n_biases, 1)), at);
    }
    if (!penalties_.count()) {
        return logits;
    }

    ggml_tensor * ids    = part(parts.ids, m, 1);
    ggml_tensor * counts = part(parts.counts, m, n_rows);
    if (n_block > 0) {
        ggml_tensor * pass = ggml_get_tensor(ctx, k_pass);
        if (!pass || pass->ne[0] < n_block) {
            throw std::logic_error("the graph has no tokens of its pass");
        }
        ggml_tensor * all   = ggml_cast(ctx, pass, GGML_TYPE_F32);
        ggml_tensor * block = ggml_cont(ctx, ggml_view_1d(ctx, all, n_block, (all->ne[0] - n_block) * sizeof(float)));
        ggml_tensor * mask  = part(parts.mask, n_block, n_rows);
        // A token may stand in both: each of its entries gets the whole count.
        ggml_tensor * of_block = sum_of_same(ctx, ids, block, counts);
        ids    = ggml_concat(ctx, ids, block, 0);
        counts = ggml_add(ctx, ggml_concat(ctx, counts, of_block, 0), sum_of_same(ctx, block, ids, mask));
    }

    ggml_tensor * at    = as_index(ctx, for_rows(ctx, ids, n_rows));
    ggml_tensor * these = pick(ctx, logits, at);
    ggml_tensor * there = ggml_step(ctx, counts); // 1 where a token counts at all
    if (penalties_.repeat != 1) {
        ggml_tensor * above = ggml_relu(ctx, these);
        ggml_tensor * below = ggml_sub(ctx, these, above);
        above = ggml_mul(ctx, above, ggml_scale_bias(ctx, there, 1 / penalties_.repeat - 1, 1));
        below = ggml_mul(ctx, below, ggml_scale_bias(ctx, there, penalties_.repeat - 1, 1));
        these = ggml_add(ctx, above, below);
    }
    ggml_tensor * off = ggml_add(ctx, ggml_scale(ctx, counts, penalties_.frequency), ggml_scale(ctx, there, penalties_.presence));
    return put(ctx, logits, ggml_sub(ctx, these, off), at);
}

ggml_tensor * slip_device_sampler::draw(ggml_context * ctx, ggml_tensor * logits, ggml_tensor * u) const {
    const slip_sampling & options = options_;
    const int64_t n_rows = logits->ne[1];

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

void slip_device_sampler::set_input(const void * user, ggml_tensor * input, const llama_pos * pos, int32_t n_rows) {
    const auto & self = *static_cast<const slip_device_sampler *>(user);
    if (self.penalties_.any() && n_rows != self.n_rows_) {
        throw std::logic_error("a pass has " + std::to_string(n_rows) + " rows, prepared were " + std::to_string(self.n_rows_));
    }
    const int32_t n_block = self.block_ ? n_rows - 1 : 0;
    const layout parts(self, n_rows, n_block);
    std::vector<float> values(parts.size);
    if (!self.greedy_) {
        std::transform(pos, pos + n_rows, values.begin() + parts.uniform,
            [&](llama_pos p) { return slip_uniform(self.options_.seed, p + 1); });
    }
    for (size_t i = 0; i < self.penalties_.biases.size(); ++i) {
        values[parts.bias_ids + i] = static_cast<float>(self.penalties_.biases[i].token);
        values[parts.biases + i]   = self.penalties_.biases[i].bias;
    }
    std::copy(self.ids_.begin(), self.ids_.end(), values.begin() + parts.ids);
    std::copy(self.counts_.begin(), self.counts_.end(), values.begin() + parts.counts);
    // Row i sees the first i tokens of the block, of which the window holds the last ones.
    for (int32_t row = 1; self.penalties_.count() && row <= n_block; ++row) {
        const int32_t last_n = self.penalties_.last_n;
        const int32_t first  = last_n < 0 ? 0 : std::max(0, row - last_n);
        std::fill(values.begin() + parts.mask + row * n_block + first, values.begin() + parts.mask + row * n_block + row, 1.0f);
    }
    ggml_backend_tensor_set(input, values.data(), 0, values.size() * sizeof(float));
}

llama_out_chooser slip_device_sampler::chooser() const {
    llama_out_chooser chooser;
    chooser.build     = build;
    chooser.set_input = set_input;
    chooser.user      = this;
    // What the graph's shape and constants depend on (FNV-1a); the rest is data.
    chooser.key = 0xcbf29ce484222325;
    const slip_sampling at = greedy_ ? slip_sampling() : options_; // greedy asks none of these
    const float values[] = { at.temperature, float(at.top_k), at.top_p, at.min_p, float(greedy_),
        penalties_.presence, penalties_.frequency, penalties_.repeat, float(penalties_.count()), float(penalties_.biases.size()),
        float(ids_.size()), float(block_), float(watches_) };
    unsigned char bytes[sizeof(values)];
    std::memcpy(bytes, values, sizeof(values));
    for (const unsigned char byte : bytes) {
        chooser.key = (chooser.key ^ byte) * 0x100000001b3;
    }
    return chooser;
}

float slip_uniform(uint64_t seed, int32_t position) {
    // The last counter word sets these numbers apart from those of slip_sampler.
    const uint32_t word = slip_philox({ uint32_t(position), 0, 0, 1 }, seed)[0];
    return ((word >> 9) + 0.5f) * 0x1p-23f;
}
