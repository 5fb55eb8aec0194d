// The governor on simulated texts and devices: never far behind plain decoding in any 200 tokens,
// and close to the best fixed width where a text stays as it is. Prints a line a case; exit status 1
// if one fails.

#include "governor.h"

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int k_block = 16, k_window = 200, k_tokens = 6000;

// `share`: of the best fixed width's rate on a steady text, at least. Where a round costs three plain steps
// and more, never to fall behind plain decoding means to wait after each that fails.
struct device {
    const char * name;
    double       share;
    slip_costs   costs;
};

device make(const char * name, double share, float plain, float draft, float v2, float v4, float v8, float v12, float v16) {
    device out = { name, share, {} };
    out.costs.size  = sizeof(slip_costs);
    out.costs.plain = plain;
    out.costs.draft = draft;
    out.costs.draft_one = 0.6f * draft;
    out.costs.verify[2]  = v2;
    out.costs.verify[4]  = v4;
    out.costs.verify[8]  = v8;
    out.costs.verify[12] = v12;
    out.costs.verify[16] = v16;
    return out;
}

// Chance that a drafted position is accepted once those before it were, by the token it stands at.
struct text {
    const char * name;
    double (*rate)(int token);
    bool steady;
};

const text k_texts[] = {
    { "nothing accepted", [](int) { return 0.0; }, true },
    { "hopeless", [](int) { return 0.1; }, true },
    { "hard", [](int) { return 0.4; }, true },
    { "middling", [](int) { return 0.65; }, true },
    { "easy", [](int) { return 0.85; }, true },
    { "copied", [](int) { return 0.99; }, true },
    { "turns every 300 tokens", [](int at) { return at / 300 % 2 ? 0.05 : 0.95; }, false },
    { "turns every 50 tokens", [](int at) { return at / 50 % 2 ? 0.0 : 0.9; }, false },
    { "easy, then never again", [](int at) { return at < 1000 ? 0.95 : 0.0; }, false },
};

int accepted_of(int width, double rate, std::mt19937 & random) {
    int n = 0;
    while (n < width - 1 && std::generate_canonical<double, 32>(random) < rate) {
        ++n;
    }
    return n;
}

// Times of the tokens of an answer, each round's spread over its tokens. width 0: the governor decides.
std::vector<double> decode(const device & d, const text & t, int width, std::mt19937 random) {
    slip_governor governor(k_block);
    governor.set_costs(d.costs);
    std::vector<double> times;
    while (times.size() < k_tokens) {
        const int    w     = width ? width : governor.choose(k_block);
        const int    n     = accepted_of(w, t.rate(int(times.size())), random);
        const double noise = 0.95 + 0.1 * std::generate_canonical<double, 32>(random);
        const double ms    = noise * governor.base_cost(w);
        governor.record(w, n, ms);
        times.insert(times.end(), n + 1, ms / (n + 1));
    }
    return times;
}

double rate_of(const std::vector<double> & times) {
    double sum = 0;
    for (const double ms : times) {
        sum += ms;
    }
    return times.size() / sum;
}

// Worst ratio to plain decoding over any window.
double worst_window(const device & d, const std::vector<double> & times) {
    double sum = 0, worst = 1e9;
    for (size_t i = 0; i < times.size(); ++i) {
        sum += times[i];
        if (i >= k_window) {
            sum -= times[i - k_window];
        }
        if (i + 1 >= k_window) {
            worst = std::min(worst, k_window * double(d.costs.plain) / sum);
        }
    }
    return worst;
}

} // namespace

int main() {
    const device devices[] = {
        make("GPU, 4B", 0.92, 4.0f, 1.0f, 4.3f, 4.5f, 4.7f, 5.0f, 5.2f),
        make("CPU, 0.8B", 0.5, 24, 30, 38, 61, 95, 110, 126),
        make("CPU, demo", 0.7, 0.9f, 1.36f, 1.1f, 1.32f, 1.8f, 2.2f, 2.65f),
        make("CPU, slow drafter", 0.6, 24, 100, 38, 61, 95, 110, 126),
    };
    int failed = 0;
    for (const device & d : devices) {
        for (const text & t : k_texts) {
            double worst = 1e9, best = 0, governed = 0;
            for (unsigned seed = 1; seed <= 5; ++seed) {
                const auto times = decode(d, t, 0, std::mt19937(seed));
                worst = std::min(worst, worst_window(d, times));
                governed += rate_of(times);
                double best_of_seed = 0;
                for (const int w : { 1, 2, 3, 4, 6, 8, 12, 16 }) {
                    best_of_seed = std::max(best_of_seed, rate_of(decode(d, t, w, std::mt19937(seed))));
                }
                best += best_of_seed;
            }
            const double share = governed / best;
            const bool   good  = worst >= 0.97 && (!t.steady || share >= d.share);
            failed += !good;
            std::printf("%-6s %-18s %-24s worst window %.3f of plain, %.3f of the best fixed width, %.2f x plain\n",
                good ? "ok" : "FAILED", d.name, t.name, worst, share, governed / 5 * d.costs.plain);
        }
    }
    return failed ? 1 : 0;
}
