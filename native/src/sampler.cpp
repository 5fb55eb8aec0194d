#include "sampler.h"

#include "comparable.h"
#include "failure.h"
#include "philox.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

// A standard Gumbel variate for each of four neighbouring tokens.
static std::array<double, 4> gumbel(uint64_t seed, int32_t position, int32_t token) {
    std::array<double, 4> out;
    const auto words = slip_philox({ uint32_t(position), uint32_t(token) / 4, 0, 0 }, seed);
    for (int i = 0; i < 4; ++i) {
        const double u = (words[i] + 0.5) * 0x1p-32; // in (0, 1), both ends left out
        out[i] = -std::log(-std::log(u));
    }
    return out;
}

static int32_t argmax(const float * logits, int32_t n_vocab) {
    return static_cast<int32_t>(std::max_element(logits, logits + n_vocab) - logits);
}

slip_sampler::slip_sampler(const slip_sampling & options, int32_t n_vocab, bool watches) :
    options_(options),
    penalties_(options, n_vocab),
    device_(options, penalties_, n_vocab, watches),
    watches_(watches),
    n_vocab_(n_vocab) {
    const bool known = options.verify >= SLIP_VERIFY_GREEDY && options.verify <= SLIP_VERIFY_GPU_SAMPLE;
    const bool valid = std::isfinite(options.temperature) && options.temperature >= 0 && options.top_k >= 0 &&
        options.top_p > 0 && options.top_p <= 1 && options.min_p >= 0 && options.min_p < 1;
    if (!known || !valid) {
        throw slip_failure(SLIP_ERROR_OPTION, known ? "The sampling values are out of range." : "Unknown verify mode.");
    }
    options_.biases = nullptr; // copied with the penalties
}

bool slip_sampler::greedy() const {
    return options_.verify == SLIP_VERIFY_GREEDY || options_.temperature == 0;
}

bool slip_sampler::on_device() const {
    return greedy() || options_.verify == SLIP_VERIFY_GPU_SAMPLE;
}

void slip_sampler::install(llama_context * ctx, const int32_t * before, int32_t n_before, int32_t n_rows) {
    if (slip_device_sampler * const sampler = device()) {
        sampler->prepare(before, n_before, n_rows, /*block*/ true);
        const llama_out_chooser chooser = sampler->chooser();
        llama_set_out_chooser(ctx, &chooser);
    } else {
        llama_set_out_argmax(ctx, on_device());
    }
}

slip_device_sampler * slip_sampler::device() {
    return on_device() && (!greedy() || penalties_.any() || watches_) ? &device_ : nullptr;
}

int32_t slip_sampler::choose(const float * logits, const int32_t * before, int32_t n_before, int32_t position) {
    if (!slip_comparable(logits, n_vocab_)) {
        return LLAMA_TOKEN_NULL;
    }
    if (penalties_.any()) {
        penalised_.assign(logits, logits + n_vocab_);
        penalties_.apply(before, n_before, penalised_.data(), n_vocab_);
        logits = penalised_.data();
        if (!slip_comparable(logits, n_vocab_)) {
            return LLAMA_TOKEN_NULL;
        }
    }
    if (greedy()) {
        return argmax(logits, n_vocab_);
    }

    kept_.resize(n_vocab_);
    std::iota(kept_.begin(), kept_.end(), 0);
    keep_top_k(logits);
    keep_top_p(logits);
    keep_min_p(logits);
    std::sort(kept_.begin(), kept_.end()); // by id: neighbours share a call of the generator

    int32_t best = kept_.front(), quad = -1;
    double  best_score = -std::numeric_limits<double>::infinity();
    std::array<double, 4> noise = {};
    for (const int32_t token : kept_) {
        if (token / 4 != quad) {
            quad  = token / 4;
            noise = gumbel(options_.seed, position, token);
        }
        const double score = double(logits[token]) / options_.temperature + noise[token % 4];
        if (score > best_score) {
            best_score = score;
            best       = token;
        }
    }
    return best;
}

void slip_sampler::keep_top_k(const float * logits) {
    const size_t k = options_.top_k;
    if (k == 0 || k >= kept_.size()) {
        return;
    }
    const auto likelier = [logits](int32_t a, int32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; };
    // What is likelier than the one behind the k likeliest: of equals at the edge all or none.
    std::nth_element(kept_.begin(), kept_.begin() + k, kept_.end(), likelier);
    const float behind = logits[kept_[k]];
    const int32_t best = *std::min_element(kept_.begin(), kept_.begin() + k, likelier);
    kept_.resize(k);
    kept_.erase(std::remove_if(kept_.begin(), kept_.end(), [&](int32_t t) { return logits[t] == behind; }), kept_.end());
    if (kept_.empty()) {
        kept_.push_back(best);
    }
}

void slip_sampler::keep_top_p(const float * logits) {
    if (options_.top_p >= 1) {
        return;
    }
    const auto less_likely = [logits](int32_t a, int32_t b) { return logits[a] != logits[b] ? logits[a] < logits[b] : a > b; };
    const float max = logits[*std::max_element(kept_.begin(), kept_.end(), less_likely)];
    double total = 0;
    for (const int32_t token : kept_) {
        total += std::exp(double(logits[token]) - max);
    }

    // A heap gives the likeliest one after the other without sorting the whole vocabulary.
    std::make_heap(kept_.begin(), kept_.end(), less_likely);
    auto   end = kept_.end();
    double sum = 0;
    while (end != kept_.begin() && sum < options_.top_p * total) {
        std::pop_heap(kept_.begin(), end, less_likely);
        --end;
        sum += std::exp(double(logits[*end]) - max);
    }
    kept_.erase(kept_.begin(), end);
}

void slip_sampler::keep_min_p(const float * logits) {
    if (options_.min_p <= 0) {
        return;
    }
    float max = -std::numeric_limits<float>::infinity();
    for (const int32_t token : kept_) {
        max = std::max(max, logits[token]);
    }
    const float least = max + std::log(options_.min_p);
    kept_.erase(std::remove_if(kept_.begin(), kept_.end(), [&](int32_t t) { return logits[t] < least; }), kept_.end());
}
