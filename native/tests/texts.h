// Kinds of text as a governor meets them, and what an answer of one takes on a device: simulated by test-governor,
// decoded with rounds of a real pair by bench-round.

#pragma once

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

constexpr int    k_window = 200, k_settled = 64;
constexpr double k_share  = 0.90; // of the best fixed width that is asked, from token 64 on

// Times of a round in milliseconds: a plain step, and draft and verify of some widths.
struct device {
    const char * name;
    bool         shares; // whether the best fixed width must be met: where a try costs much of what may be lost, it cannot
    double       plain;
    std::vector<std::pair<int, double>> rounds;

    double ms(int width) const {
        if (width == 1) {
            return plain;
        }
        for (size_t i = 0; i < rounds.size(); ++i) {
            if (width <= rounds[i].first) { // products come in steps of rows
                const double from = i ? rounds[i - 1].second : rounds[0].second;
                const int    base = i ? rounds[i - 1].first : 1;
                return from + (rounds[i].second - from) * (width - base) / (rounds[i].first - base);
            }
        }
        return rounds.back().second;
    }
};

// Chance that drafted position i (from 1) is accepted once those before it were, at a token of the answer.
struct text {
    const char * name;
    double (*rate)(int token, int i);
    double share = k_share; // of the best fixed width that is held
};

inline const text k_texts[] = {
    { "guide",     [](int, int i) { return i < 4 ? 0.88 : 0.82; } },
    { "code",      [](int at, int) { return at / 12 % 3 ? 0.96 : 0.70; }, 0.85 }, // lines that repeat, names that do not
    { "free text", [](int, int i) { return 0.68 - 0.01 * i; } },
    { "random",    [](int, int) { return 0.01; } },
    { "hard",      [](int, int) { return 0.40; } },
    { "copied",    [](int, int) { return 0.99; } },
    { "turns to random",    [](int at, int) { return at < 250 ? 0.90 : 0.01; } },
    { "turns to a guide",   [](int at, int i) { return at < 250 ? 0.01 : i < 4 ? 0.88 : 0.82; } },
    { "code in free text",  [](int at, int) { return at / 150 % 2 ? 0.92 : 0.60; } },
};

// The time that each token took on average, in plain steps, where `choose` gives the width of each round and `record`
// hears of it: width, accepted tokens, number.
template <typename Choose, typename Record>
std::vector<double> decode(const device & d, const text & t, int tokens, std::mt19937 & random, const Choose & choose, const Record & record) {
    std::vector<double> out;
    for (int round = 0; int(out.size()) < tokens; ++round) {
        const int width = choose();
        const int at    = int(out.size());
        int n = 0;
        while (n < width - 1 && std::generate_canonical<double, 32>(random) < t.rate(at + n, n + 1)) {
            ++n;
        }
        record(width, n, round);
        out.insert(out.end(), n + 1, d.ms(width) / d.plain / (n + 1));
    }
    return out;
}

inline double rate(const std::vector<double> & times, size_t from, size_t to) {
    double sum = 0;
    for (size_t i = from; i < to; ++i) {
        sum += times[i];
    }
    return double(to - from) / sum;
}

inline double worst_window(const std::vector<double> & times) {
    double worst = 1e9;
    for (size_t i = 0; i + k_window <= times.size(); ++i) {
        worst = std::min(worst, rate(times, i, i + k_window));
    }
    return worst;
}

// The speed of the fixed width that is best for a text on a device, over `seeds` answers, in plain steps' tokens.
inline double best_fixed(const device & d, const text & t, int length, unsigned seeds) {
    double best = 0;
    for (const int w : { 1, 2, 3, 4, 6, 8, 12, 16 }) {
        double speed = 0;
        for (unsigned seed = 1; seed <= seeds; ++seed) {
            std::mt19937 random(seed);
            const auto times = decode(d, t, length, random, [&] { return w; }, [](int, int, int) {});
            speed += rate(times, k_settled, times.size()) / seeds;
        }
        best = std::max(best, speed);
    }
    return best;
}
