#include "governor.h"

#include <algorithm>
#include <cmath>

namespace {

constexpr double k_budget = 3;     // plain steps that trying may lose at most...
constexpr double k_debt   = 2;     // ... and a round that should gain may lose beyond it
constexpr double k_refill = 0.005; // plain steps a plain step refills
constexpr double k_memory = 0.94;  // a round's weight after one more: half after 11
constexpr double k_drift  = 0.1;   // weight of a new timing
constexpr double k_stay   = 1.03;  // another width must be so much better: a graph is built for it
constexpr double k_prior_tries = 2, k_prior_rate = 0.8; // before anything is known of a position

} // namespace

slip_governor::slip_governor(int32_t block) : block_(block), budget_(k_budget) {
    tries_.fill(0);
    hits_.fill(0);
    drift_.fill(1);
}

void slip_governor::set_costs(const slip_costs & costs) {
    costs_ = costs;
    drift_.fill(1);
    costs_.verify[1] = costs_.plain;
    int32_t known = 1;
    for (int32_t w = 2; w <= block_; ++w) {
        if (costs_.verify[w] <= 0) {
            continue;
        }
        for (int32_t i = known + 1; i < w; ++i) {
            const double share = double(i - known) / (w - known);
            costs_.verify[i] = float(costs_.verify[known] + share * (costs_.verify[w] - costs_.verify[known]));
        }
        known = w;
    }
    // Behind the last measured width: as dear for each row as up to there.
    for (int32_t w = known + 1; w <= block_; ++w) {
        costs_.verify[w] = costs_.verify[known] * float(w) / float(known);
    }
}

double slip_governor::cost(int32_t width) const {
    return (width > 1 ? costs_.draft + costs_.verify[width] : costs_.plain) * drift_[width];
}

// `caution` is in standard errors below the estimate.
double slip_governor::expected_tokens(int32_t width, double caution) const {
    double tokens = 1, reached = 1, rate = k_prior_rate;
    for (int32_t i = 1; i < width; ++i) {
        const double n = tries_[i] + k_prior_tries;
        if (tries_[i] > 0 || i == 1) { // a position never tried behaves like the one before it
            rate = (hits_[i] + k_prior_tries * k_prior_rate) / n;
        }
        reached *= std::clamp(rate - caution * std::sqrt(rate * (1 - rate) / n), 0.0, 1.0);
        tokens  += reached;
    }
    return tokens;
}

int32_t slip_governor::choose(int32_t most) {
    most = std::min(most, block_);
    const double plain = cost(1);
    const auto loss = [&](int32_t w) { return cost(w) / plain - 1; }; // in plain steps, if nothing is accepted
    int32_t best = 1;
    double  best_rate = 1 / plain;
    for (const int32_t w : { 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, most }) {
        if (w > most || w < 2) {
            continue;
        }
        const bool   sure = expected_tokens(w, 1) * plain > cost(w);
        const double rate = expected_tokens(w, 0) / cost(w) * (w == last_ ? k_stay : 1);
        if (rate > best_rate && loss(w) <= budget_ + (sure ? k_debt : 0)) {
            best      = w;
            best_rate = rate;
        }
    }
    reason_ = best == 1 ? SLIP_REASON_PLAIN : best < most ? SLIP_REASON_PAYS : SLIP_REASON_WHOLE;
    // Where nothing seems to pay, a small try now and then tells whether the text has changed.
    if (best == 1 && budget_ >= k_budget) {
        for (const int32_t w : { 4, 3, 2 }) {
            if (w <= most && loss(w) <= budget_) {
                reason_ = SLIP_REASON_PROBE;
                best    = w;
                break;
            }
        }
    }
    last_ = best;
    return best;
}

void slip_governor::record(int32_t width, int32_t accepted, double ms) {
    const double plain = cost(1);
    for (int32_t i = 1; i < width; ++i) {
        tries_[i] *= k_memory;
        hits_[i]  *= k_memory;
    }
    for (int32_t i = 1; i < width && i <= accepted + 1; ++i) {
        tries_[i] += 1;
        hits_[i]  += i <= accepted;
    }
    const double base = width > 1 ? costs_.draft + costs_.verify[width] : costs_.plain;
    // One hiccup of the machine is no news.
    const double ratio = std::clamp(ms / base, 0.5, 2.0);
    for (int32_t w = 1; w <= block_; ++w) {
        const double weight = w == width ? k_drift : k_drift / 4; // a context that grows makes all dearer
        drift_[w] += weight * (ratio / drift_[width] - 1) * drift_[w];
    }
    const double gain = (1 + accepted) - cost(width) / plain; // in plain steps
    budget_ = std::min(k_budget, budget_ + gain + k_refill * cost(width) / plain);
}

void slip_governor::begin_answer() {
    for (int32_t i = 1; i <= block_; ++i) {
        tries_[i] /= 2;
        hits_[i]  /= 2;
    }
}
