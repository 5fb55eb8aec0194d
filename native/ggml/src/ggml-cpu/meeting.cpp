#include "meeting.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace {

using clock_type = std::chrono::steady_clock;

constexpr std::chrono::microseconds k_spin(100);  // about what putting a thread to sleep and waking it takes
constexpr std::chrono::microseconds k_away(1000); // nobody works that long on his part of a step; a time slice is longer
constexpr int k_looks = 16;                       // between two looks at the clock

// Who spins uses up his share of a core that another program wants as well, and is the one pushed from it when he is
// needed. So after waiting for one who was away the next waits go to sleep at once: first some, then more, until many
// in a row were short again. One for all meetings: it is the machine that is busy.
constexpr int k_first = 256, k_most = 4096, k_short = 512;
std::atomic<int> asleep_at_once { 0 }, asleep_next { 0 }, short_in_row { 0 };

bool may_spin() {
    if (asleep_at_once.load(std::memory_order_relaxed) > 0) {
        asleep_at_once.fetch_sub(1, std::memory_order_relaxed);
        return false;
    }
    return true;
}

void was_short() {
    if (asleep_next.load(std::memory_order_relaxed) > 0 && short_in_row.fetch_add(1, std::memory_order_relaxed) >= k_short) {
        asleep_next.store(0, std::memory_order_relaxed);
    }
}

void was_away() {
    const int n = std::clamp(2 * asleep_next.load(std::memory_order_relaxed), k_first, k_most);
    asleep_next.store(n, std::memory_order_relaxed);
    asleep_at_once.store(n, std::memory_order_relaxed);
    short_in_row.store(0, std::memory_order_relaxed);
}

thread_local bool t_on_errand = false;

void relax() {
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#elif defined(__aarch64__) && !defined(_MSC_VER)
    __asm__ volatile("yield" ::: "memory");
#endif
}

} // namespace

struct ggml_meeting {
    alignas(64) std::atomic<int>      n_came { 0 };
    alignas(64) std::atomic<uint32_t> number { 0 }; // of meetings that are over
    std::atomic<int>        n_asleep { 0 };
    std::mutex              mutex;
    std::condition_variable over;

    bool is_over(uint32_t from) const { return number.load(std::memory_order_acquire) != from; }

    bool spin(uint32_t from, clock_type::time_point start) const {
        do {
            for (int i = 0; i < k_looks; ++i) {
                if (is_over(from)) {
                    return true;
                }
                relax();
            }
        } while (clock_type::now() - start < k_spin);
        return false;
    }

    void sleep(uint32_t from) {
        std::unique_lock<std::mutex> lock(mutex);
        n_asleep.fetch_add(1); // before the number is read again: who changes it reads this afterwards
        over.wait(lock, [&] { return number.load() != from; });
        n_asleep.fetch_sub(1);
    }

    void wait(uint32_t from) {
        if (!may_spin()) {
            sleep(from);
            return;
        }
        const auto start = clock_type::now();
        if (!spin(from, start)) {
            sleep(from);
        }
        if (clock_type::now() - start < k_away) {
            was_short();
        } else {
            was_away();
        }
    }

    void end() {
        number.fetch_add(1);
        if (n_asleep.load() > 0) {
            { std::lock_guard<std::mutex> lock(mutex); }
            over.notify_all();
        }
    }
};

ggml_meeting * ggml_meeting_new(void) {
    return new ggml_meeting();
}

void ggml_meeting_free(ggml_meeting * meeting) {
    delete meeting;
}

void ggml_meet(ggml_meeting * meeting, int n, void (*errand)(void * ctx), void * ctx) {
    if (n > 1 && !t_on_errand) {
        const uint32_t number = meeting->number.load(std::memory_order_relaxed);
        if (meeting->n_came.fetch_add(1) < n - 1) {
            meeting->wait(number);
            return;
        }
        meeting->n_came.store(0, std::memory_order_relaxed);
    }
    if (errand) {
        const bool before = t_on_errand;
        t_on_errand = true;
        errand(ctx);
        t_on_errand = before;
    }
    if (n > 1 && !t_on_errand) {
        meeting->end();
    }
}
