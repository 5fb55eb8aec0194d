#include "governor.h"

#include <algorithm>
#include <cmath>

namespace {

constexpr int32_t k_window = 200;  // tokens...
constexpr double  k_risk   = 4.5;  // ... in which so many plain steps may be lost, 2.25 %...
constexpr double  k_probe  = 2.0;  // ... and so many to try whether a text has changed that did not pay
constexpr double k_memory = 0.94;  // a round's weight after one more: half after 11
constexpr double k_drift  = 0.1;   // weight of a new timing
constexpr double k_stay   = 1.03;  // another width must be so much better: a graph is built for it
constexpr double k_prior_tries = 2, k_prior_rate = 0.8; // before anything is known of a position

} // namespace

slip_governor::slip_governor(int32_t block) : block_(block) {
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

// As measured at load. The head runs for the tokens that are verified only.
double slip_governor::base_cost(int32_t width) const {
    if (width < 2) {
        return costs_.plain;
    }
    const double share = block_ > 2 ? double(width - 2) / (block_ - 2) : 1;
    return costs_.draft_one + share * (costs_.draft - costs_.draft_one) + costs_.verify[width];
}

double slip_governor::cost(int32_t width) const {
    return base_cost(width) * drift_[width];
}

double slip_governor::expected_tokens(int32_t width) const {
    double tokens = 1, reached = 1, rate = k_prior_rate;
    for (int32_t i = 1; i < width; ++i) {
        const double n = tries_[i] + k_prior_tries;
        if (tries_[i] > 0 || i == 1) { // a position never tried behaves like the one before it
            rate = (hits_[i] + k_prior_tries * k_prior_rate) / n;
        }
        reached *= rate;
        tokens  += reached;
    }
    return tokens;
}

// Plain steps that were lost since the best moment of the last k_window tokens.
double slip_governor::lost() const {
    double best = balance_;
    for (const moment & m : moments_) {
        best = std::max(best, m.balance);
    }
    return best - balance_;
}

int32_t slip_governor::choose(int32_t most) {
    most = std::min(most, block_);
    const double plain = cost(1), lost = this->lost();
    const auto loss = [&](int32_t w) { return cost(w) / plain - 1; }; // in plain steps, if nothing is accepted
    int32_t best = 1;
    double  best_rate = 1 / plain;
    for (const int32_t w : { 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, most }) {
        if (w > most || w < 2) {
            continue;
        }
        const double rate = expected_tokens(w) / cost(w) * (w == last_ ? k_stay : 1);
        if (rate > best_rate && lost + loss(w) <= k_risk) {
            best      = w;
            best_rate = rate;
        }
    }
    reason_ = best == 1 ? SLIP_REASON_PLAIN : best < most ? SLIP_REASON_PAYS : SLIP_REASON_WHOLE;
    // Where nothing seems to pay, a small try now and then tells whether the text has changed.
    for (const int32_t w : { 4, 3, 2 }) {
        if (best == 1 && w <= most && lost + loss(w) <= k_probe) {
            reason_ = SLIP_REASON_PROBE;
            best    = w;
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
    // One hiccup of the machine is no news.
    const double ratio = std::clamp(ms / base_cost(width), 0.5, 2.0);
    const double news  = ratio / drift_[width] - 1;
    for (int32_t w = 1; w <= block_; ++w) {
        const double weight = w == width ? k_drift : k_drift / 4; // a context that grows makes all dearer
        drift_[w] *= 1 + weight * news;
    }
    moments_.push_back({ tokens_, balance_ });
    tokens_  += 1 + accepted;
    balance_ += (1 + accepted) - ms / plain; // in plain steps
    while (moments_.front().token + k_window < tokens_) {
        moments_.pop_front();
    }
}

void slip_governor::begin_answer() {
    for (int32_t i = 1; i <= block_; ++i) {
        tries_[i] /= 2;
        hits_[i]  /= 2;
    }
    moments_.clear();
}
