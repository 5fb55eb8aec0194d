#include "crew.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#if !defined(_WIN32)
#include <unistd.h>
#endif

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace {

using clock_type = std::chrono::steady_clock;

constexpr std::chrono::microseconds k_spin(100);  // about what putting a thread to sleep and waking it takes
constexpr std::chrono::microseconds k_away(1000); // a time slice is longer, the parts of a step are shorter
constexpr int k_looks = 16;                       // between two looks at the clock

// Who spins uses up his share of a core that another program wants as well, and is the one pushed from it when he is
// needed. So after waiting for one who was away the next waits go to sleep at once: first some, then more, until many
// in a row were short again. One for all crews: it is the machine that is busy.
constexpr int k_first = 256, k_most = 4096, k_short = 512;
std::atomic<int> asleep_at_once { 0 }, asleep_next { 0 }, short_in_row { 0 };
std::atomic<uint32_t> times_away { 0 };

// Whether the calling thread waited for a core, for a while, since it asked before. Part of a prompt may take longer than a
// time slice, so who came late need not have been away. Where the system does not tell, that is taken for granted.
bool waited_for_a_core() {
#if defined(__linux__)
    constexpr unsigned long long k_away_ns = std::chrono::nanoseconds(k_away).count();
    thread_local unsigned long long before = ~0ull;
    unsigned long long ran = 0, waited = 0; // ns
    std::FILE * file = std::fopen("/proc/thread-self/schedstat", "re");
    const bool  told = file && std::fscanf(file, "%llu %llu", &ran, &waited) == 2;
    if (file) {
        std::fclose(file);
    }
    if (told) {
        const bool away = waited > before && waited - before > k_away_ns / 2;
        before = waited;
        return away;
    }
#endif
    return true;
}

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
    times_away.fetch_add(1, std::memory_order_relaxed);
    const int n = std::clamp(2 * asleep_next.load(std::memory_order_relaxed), k_first, k_most);
    asleep_next.store(n, std::memory_order_relaxed);
    asleep_at_once.store(n, std::memory_order_relaxed);
    short_in_row.store(0, std::memory_order_relaxed);
}

void relax() {
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#elif defined(__aarch64__) && !defined(_MSC_VER)
    __asm__ volatile("yield" ::: "memory");
#endif
}

// A number that goes up, and threads that wait for it to.
class counter {
public:
    uint32_t now() const { return number.load(std::memory_order_acquire); }

    // Without waking anybody.
    void step() { number.fetch_add(1); }

    // Of those who sleep as many as are needed.
    void step_and_wake(int n) {
        step();
        if (n_asleep.load() > 0) {
            { std::lock_guard<std::mutex> lock(mutex); }
            for (int i = 0; i < n; ++i) {
                changed.notify_one();
            }
        }
    }

    void step_and_wake() {
        step();
        if (n_asleep.load() > 0) {
            { std::lock_guard<std::mutex> lock(mutex); }
            changed.notify_all();
        }
    }

    bool anybody_sleeps() const { return n_asleep.load(std::memory_order_relaxed) > 0; }

    bool spin(uint32_t from, clock_type::time_point start) const {
        do {
            for (int i = 0; i < k_looks; ++i) {
                if (now() != from) {
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
        changed.wait(lock, [&] { return number.load() != from; });
        n_asleep.fetch_sub(1);
    }

private:
    alignas(64) std::atomic<uint32_t> number { 0 };
    std::atomic<int>        n_asleep { 0 };
    std::mutex              mutex;
    std::condition_variable changed;
};

thread_local bool     t_on_errand = false;
thread_local uint32_t t_graph = 0; // in which the thread takes part, or took part last
thread_local int      t_works = 0; // that are on the thread's stack: an operation may compute a graph of its own

// The thread is at work, and before and after it what it was.
class at_work {
public:
    at_work() { ++t_works; t_on_errand = false; }
    ~at_work() { --t_works; t_on_errand = on_errand; t_graph = graph; }
    at_work(const at_work &) = delete;

private:
    const bool     on_errand = t_on_errand;
    const uint32_t graph = t_graph;
};

// How many are to compute graphs while the machine is busy: as many as were the quickest, by what graphs took against
// what those of their kind take. Now and then one more or one less is tried for a while.
class headcount {
public:
    explicit headcount(int n) : best(n), tried(n), cost(n + 1, 0) {}

    int now() const { return tried; }

    void record(double took, double usual) {
        spent += took;
        due   += usual;
        if (spent < (tried == best ? hold : k_try)) {
            return;
        }
        const double mean = spent / due, before = cost[tried];
        cost[tried] = before > 0 ? (2 * mean + before) / 3 : mean;
        if (tried == best) {
            tried = next();
        } else {
            hold = k_hold * spent;
            if (cost[tried] < k_better * cost[best]) {
                best = tried;
            }
            tried = best;
        }
        spent = due = 0;
    }

private:
    static constexpr double k_try = 40, k_hold = 16; // some time slices in ms, and how much longer the best is kept
    static constexpr double k_better = 0.9;

    // What is tried beside the best.
    int next() {
        const int n = int(cost.size()) - 1;
        upwards = best == n ? false : best == 1 ? true : !upwards;
        return upwards ? best + 1 : best - 1;
    }

    int    best, tried;
    bool   upwards = false;
    double spent = 0, due = 0, hold = k_try;
    std::vector<double> cost; // by their number; 0: never tried
};

} // namespace

struct ggml_crew {
    // While somebody was away not long ago: how many compute of how many, and what kinds of graphs take in ms.
    std::map<int, headcount>   counts;
    std::map<uint64_t, double> usual_ms;
    bool     is_busy = false;
    uint32_t away_seen = 0;
    double   calm_ms = 0; // of graphs that all were to compute, with nobody away

    int choose(int n) {
        return counts.try_emplace(n, n).first->second.now();
    }

    // `was_busy`: the number was chosen.
    void record(bool was_busy, int n, int chosen, uint64_t kind, double ms) {
        constexpr double k_calm = 500;
        constexpr size_t k_kinds = 64;
        const uint32_t away = times_away.load(std::memory_order_relaxed);
        if (away != away_seen) {
            away_seen = away;
            calm_ms   = 0;
            is_busy   = true;
        } else if (chosen == n && asleep_at_once.load(std::memory_order_relaxed) == 0) {
            calm_ms += ms; // who sleeps at once does not see whether somebody is away
        }
        is_busy = is_busy && calm_ms < k_calm;
        if (!is_busy || usual_ms.size() > k_kinds) {
            counts.clear();
            usual_ms.clear();
        } else if (was_busy) {
            double & usual = usual_ms.try_emplace(kind, ms).first->second;
            counts.at(n).record(ms, usual);
            usual += (ms - usual) / 16;
        }
    }

    // Helpers that there are, and what they are to do. Odd: a graph is in work.
    counter graphs;
    int     n_helpers = 0, n_most = 1;
    int     n_wanted = 0; // helpers who are to be called once there is something to share
    std::atomic<bool> over { false }; // the thread that it belongs to has ended
    void (* work)(void * ctx, int ith) = nullptr;
    void *  ctx = nullptr;

    // Who take part in it. Places are given under the mutex, and held from the end of the next meeting on.
    std::mutex       mutex;
    int              n_places = 1;
    std::atomic<int> n_in { 1 };
    std::atomic<uint32_t> in_from { 0 }; // the number of meetings from which on the last of them are

    counter               meetings;
    std::atomic<uint32_t> was_pushed { ~0u }; // the last one to which somebody came late who had waited for a core
    std::atomic<bool>     goes_on { true };
    alignas(64) std::atomic<int> n_came { 0 };

    // False: the work is at its end, and whose it was may have gone on. A graph that is over is one that goes on no more.
    bool meet(bool (*errand)(void * ctx), void * errand_ctx) {
        const int n = n_in.load(std::memory_order_relaxed);
        if (!t_on_errand && n > 1) {
            const uint32_t number = meetings.now();
            if (meetings.anybody_sleeps() && asleep_at_once.load(std::memory_order_relaxed) == 0 && waited_for_a_core()) {
                was_pushed.store(number, std::memory_order_relaxed);
            }
            if (n_came.fetch_add(1) < n - 1) {
                wait(number);
                return goes_on.load() && graphs.now() == t_graph;
            }
            n_came.store(0, std::memory_order_relaxed);
        }
        bool more = true;
        if (errand) {
            const bool before = t_on_errand;
            t_on_errand = true;
            more = errand(errand_ctx);
            t_on_errand = before;
        }
        if (!t_on_errand) {
            goes_on.store(more, std::memory_order_release); // who sees it sees which graph it is of
            const bool admitted = errand && more && admit();
            if (n > 1 || admitted) {
                meetings.step_and_wake();
            }
            if (errand && more && n_wanted > 0) { // behind the last errand it is the caller's again
                const int called = n_wanted;
                n_wanted = 0;
                graphs.step_and_wake(called); // now there is something to share
            }
        }
        return more;
    }

    void wait(uint32_t from) {
        if (!may_spin()) {
            meetings.sleep(from);
            return;
        }
        const auto start = clock_type::now();
        if (!meetings.spin(from, start)) {
            meetings.sleep(from);
        }
        if (clock_type::now() - start < k_away) {
            was_short();
        } else if (was_pushed.load(std::memory_order_relaxed) == from) {
            was_away();
        }
    }

    // Those who have a place, once this meeting is over: who began before would come to the next one ahead of all others,
    // and take this one's end for that one's.
    bool admit() {
        if (n_waiting.load(std::memory_order_relaxed) == 0) {
            return false;
        }
        std::lock_guard<std::mutex> lock(mutex);
        n_waiting.store(0, std::memory_order_relaxed);
        in_from.store(meetings.now() + 1, std::memory_order_relaxed);
        n_in.store(n_places, std::memory_order_release);
        return true;
    }

    void run(int n, void (*work_of)(void * ctx, int ith), void * work_ctx) {
        {
            std::lock_guard<std::mutex> lock(mutex);
            work     = work_of;
            ctx      = work_ctx;
            n_most   = n;
            n_places = 1;
        }
        const at_work here;
        n_wanted = n - 1;
        t_graph  = graphs.now() + 1;
        work(ctx, 0);
        n_wanted = 0;
        if (graphs.now() != t_graph) {
            return; // nobody was called
        }
        std::lock_guard<std::mutex> lock(mutex);
        n_in.store(1, std::memory_order_relaxed);
        graphs.step(); // nobody needs to wake for it
        if (n_waiting.exchange(0) > 0) {
            meetings.step_and_wake();
        }
    }

    // By a helper, which takes part if there is time.
    void join(uint32_t graph) {
        int place;
        {
            std::lock_guard<std::mutex> lock(mutex);
            if (graphs.now() != graph || n_places == n_most) {
                return;
            }
            place = n_places++;
            n_waiting.fetch_add(1, std::memory_order_relaxed);
        }
        for (;;) {
            const uint32_t number = meetings.now();
            const bool     is_in  = place < n_in.load(std::memory_order_acquire) && number == in_from.load(std::memory_order_relaxed);
            if (graphs.now() != graph) {
                return; // it came to its end before
            }
            if (is_in) {
                const at_work here;
                t_graph = graph;
                return work(ctx, place);
            }
            if (!meetings.spin(number, clock_type::now())) {
                meetings.sleep(number);
            }
        }
    }

    void help() {
        for (uint32_t seen = 0;;) {
            if (!graphs.spin(seen, clock_type::now())) {
                graphs.sleep(seen);
            }
            seen = graphs.now();
            if (over) {
                return;
            }
            if (seen % 2 == 1) {
                join(seen);
            }
        }
    }

    void end() {
        over = true;
        graphs.step_and_wake();
    }

private:
    std::atomic<int> n_waiting { 0 }; // with a place, and not in
};

namespace {

#if defined(_WIN32)
int process() { return 0; } // none comes of another by copying
#else
pid_t process() { return getpid(); }
#endif

// Helpers are not waited for: where a library is unloaded, on Windows, a thread that ends would wait for itself. A process
// that was forked has none of those that there were, and finds mutexes as they were just then.
struct own_crew {
    std::shared_ptr<ggml_crew> crew = std::make_shared<ggml_crew>();
    decltype(process()) made_in = process();
    ~own_crew() {
        if (made_in == process()) {
            crew->end();
        }
    }

    void grow(int n_helpers) {
        try {
            for (; crew->n_helpers < n_helpers; ++crew->n_helpers) {
                std::thread([crew = crew] { crew->help(); }).detach();
            }
        } catch (const std::exception &) {
            // as many as there can be: for threads or memory
        }
    }
};

thread_local own_crew  t_crew;
thread_local ggml_crew t_alone; // without helpers, of a graph within a graph

} // namespace

ggml_crew * ggml_crew_of_caller(void) {
    if (t_works > 0) {
        return &t_alone;
    }
    if (t_crew.made_in != process()) {
        t_crew.crew    = std::make_shared<ggml_crew>(); // the old one belongs to its helpers as well: it stays as it is
        t_crew.made_in = process();
    }
    return t_crew.crew.get();
}

void ggml_crew_run(ggml_crew * crew, int n, uint64_t (*kind_of)(void * ctx), void (*work)(void * ctx, int ith), void * ctx) {
    if (n == 1 || t_works > 0) {
        const at_work here;
        return work(ctx, 0);
    }
    const bool     is_busy = crew->is_busy;
    const uint64_t kind    = is_busy ? kind_of(ctx) : 0;
    const int      chosen  = is_busy ? crew->choose(n) : n;
    const auto     start   = clock_type::now();
    t_crew.grow(chosen - 1);
    crew->run(chosen, work, ctx);
    crew->record(is_busy, n, chosen, kind, std::chrono::duration<double, std::milli>(clock_type::now() - start).count());
}

bool ggml_crew_meet(ggml_crew * crew, bool (*errand)(void * ctx), void * ctx) {
    return crew->meet(errand, ctx);
}

void ggml_crew_barrier(ggml_crew * crew) {
    crew->meet(nullptr, nullptr);
}

int ggml_crew_size(const ggml_crew * crew) {
    return crew->n_in.load(std::memory_order_relaxed);
}
