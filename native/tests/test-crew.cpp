// Graphs computed by crews that others keep from the cores: test-crew [TIMES]. Exit status 1 if a value is wrong.
//
// Three callers compute at once, with one to five threads each, more than most machines have cores: so helpers come late,
// stay away or come to a graph that is over already. What belongs to a graph is gone and overwritten when the next begins.
// And who takes part: the caller of a graph in all of it; all although one part takes long; somebody at all, also in a
// process that was forked; nobody in a graph within a graph, nor in one with nothing to share.

#include "ggml-cpu.h"
#include "ggml.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#if defined(__linux__)

// Where threads are pushed from their cores, also those of the library: the caller of a graph for longer than its helper,
// once that has asked to take part.
static std::atomic<bool> g_pushes { false }, g_asked { false };
static std::atomic<int>  g_helper_unlocks { 0 };
static thread_local bool t_calls = false;

extern "C" int pthread_mutex_unlock(pthread_mutex_t * mutex) {
    static auto * const unlock = (int (*)(pthread_mutex_t *)) dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    const int result = unlock(mutex);
    if (!g_pushes) {
        return result;
    }
    if (t_calls ? g_asked.exchange(false) : g_helper_unlocks.fetch_add(1) < 2) { // behind its sleep, and for a place
        g_asked = g_asked || !t_calls;
        std::this_thread::sleep_for(std::chrono::milliseconds(t_calls ? 6 : 2));
    }
    return result;
}

#endif

namespace {

constexpr int k_width = 128, k_rows = 80, k_layers = 12, k_callers = 3, k_most_threads = 5;

// Products large enough to be shared, with what one thread does between them.
struct graph {
    ggml_context * ctx;
    ggml_cgraph *  nodes;
    ggml_tensor *  out;

    graph() {
        ctx = ggml_init({ size_t(32) << 20, nullptr, false });
        ggml_tensor * x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, k_width, k_rows);
        fill(x, 1);
        for (int i = 0; i < k_layers; ++i) {
            ggml_tensor * w = ggml_new_tensor_2d(ctx, i % 2 ? GGML_TYPE_F32 : GGML_TYPE_F16, k_width, k_width);
            fill(w, 2 + i);
            x = ggml_rms_norm(ctx, ggml_add(ctx, x, ggml_silu(ctx, ggml_mul_mat(ctx, w, x))), 1e-6f);
        }
        out   = ggml_scale(ctx, ggml_view_2d(ctx, x, k_width, 4, x->nb[1], 0), 2.0f); // too small to be shared
        nodes = ggml_new_graph(ctx);
        ggml_build_forward_expand(nodes, out);
    }
    ~graph() { ggml_free(ctx); }

    static void fill(ggml_tensor * t, int seed) {
        for (int64_t i = 0; i < ggml_nelements(t); ++i) {
            ggml_set_f32_1d(t, int(i), std::sin(float(i * 7 + seed)) / 8);
        }
    }

    // What the last node has then. Nothing where the graph was aborted.
    std::vector<float> compute(int n_threads, ggml_abort_callback abort = nullptr, void * data = nullptr) {
        ggml_cplan plan = ggml_graph_plan(nodes, n_threads, nullptr);
        std::vector<uint8_t> work(plan.work_size);
        plan.work_data           = work.data();
        plan.abort_callback      = abort;
        plan.abort_callback_data = data;
        std::memset(out->data, 0xFF, ggml_nbytes(out));
        if (ggml_graph_compute(nodes, &plan) != GGML_STATUS_SUCCESS) {
            return {};
        }
        const float * values = (const float *) out->data;
        return { values, values + ggml_nelements(out) };
    }
};

bool same(const std::vector<float> & a, const std::vector<float> & b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

using part = std::function<void(int ith, int nth)>;

void call(ggml_tensor *, const ggml_tensor *, int ith, int nth, void * data) {
    (*(const part *) data)(ith, nth);
}

// A graph of calls that its threads share, or of values that are too few for that.
void compute(int nodes, int n_threads, const part * shared) {
    ggml_context * ctx = ggml_init({ size_t(1) << 20, nullptr, false });
    ggml_tensor *  x   = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 8);
    ggml_set_zero(x);
    for (int i = 0; i < nodes; ++i) {
        x = shared ? ggml_map_custom1(ctx, x, call, GGML_N_TASKS_MAX, (void *) shared) : ggml_scale(ctx, x, 2.0f);
    }
    ggml_cgraph * all = ggml_new_graph(ctx);
    ggml_build_forward_expand(all, x);
    ggml_cplan plan = ggml_graph_plan(all, n_threads, nullptr);
    plan.n_threads = n_threads; // the plan has as many as the nodes are worth
    std::vector<uint8_t> work(plan.work_size + 1);
    plan.work_data = work.data();
    ggml_graph_compute(all, &plan);
    ggml_free(ctx);
}

void nap() {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Whether a second thread comes before long.
bool somebody_joins() {
    std::atomic<bool> joined { false };
    const part waits = [&](int, int nth) {
        joined = joined || nth > 1;
        if (!joined) {
            nap();
        }
    };
    for (int i = 0; i < 300 && !joined; ++i) {
        compute(32, 2, &waits);
    }
    return joined;
}

// Graphs that threads of a graph compute meanwhile have the right values and are computed alone.
bool inner_graphs_are_right(const std::vector<float> & wanted) {
    std::atomic<int> wrong { 0 }, by_helpers { 0 }, shared { 0 };
    const part inner = [&](int, int nth) { shared += nth > 1; };
    const part outer = [&](int ith, int) {
        wrong += !same(graph().compute(3), wanted);
        compute(2, 3, &inner);
        by_helpers += ith > 0;
    };
    for (int i = 0; i < 300 && by_helpers == 0; ++i) {
        compute(8, 2, &outer);
    }
    return wrong == 0 && shared == 0 && by_helpers > 0;
}

#if defined(__linux__)

// As somebody_joins(), by a process that has this one's memory, and not its threads.
bool joins_in_a_fork() {
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(somebody_joins() ? 0 : 1);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

// The thread that has a graph takes part in all of it, whoever is pushed from its core while a helper is let in.
bool nobody_is_left_behind() {
    constexpr int k_graphs = 30, k_nodes = 12;
    int missed = 0, shared = 0;
    for (int g = 0; g < k_graphs; ++g) {
        std::atomic<int> calls[2] = {};
        const part counts = [&](int ith, int) {
            ++calls[ith];
            std::this_thread::sleep_for(std::chrono::microseconds(500));
        };
        g_helper_unlocks = 0;
        g_asked          = false;
        std::thread([&] { // its crew knows nothing of other loads
            t_calls  = true;
            g_pushes = true;
            compute(k_nodes, 2, &counts);
            g_pushes = false;
        }).join();
        missed += calls[0] != k_nodes;
        shared += calls[1] > 0;
    }
    std::printf("%d of %d graphs with a helper, %d in which the caller left nodes out\n", shared, k_graphs, missed);
    return missed == 0 && shared > 0;
}

long switches_of_others() {
    rusage all, own;
    getrusage(RUSAGE_SELF, &all);
    getrusage(RUSAGE_THREAD, &own);
    return all.ru_nvcsw - own.ru_nvcsw;
}

// Times that helpers, of which there are five, woke for one of so many graphs, which they all slept before.
double woken(int n_threads, const part * shared) {
    constexpr int k_graphs = 100;
    nap();
    const long before = switches_of_others();
    for (int i = 0; i < k_graphs; ++i) {
        compute(4, n_threads, shared);
        nap();
    }
    return double(switches_of_others() - before) / k_graphs;
}

bool few_wake_for_little() {
    const part nothing = [](int, int) {};
    for (int i = 0; i < 20; ++i) {
        compute(4, 6, &nothing); // now they are there
    }
    const double small = woken(6, nullptr), two = woken(2, &nothing), six = woken(6, &nothing);
    std::printf("helpers woke %.2f times for a graph with nothing to share, %.2f for two threads, %.2f for six\n", small, two, six);
    return small < 0.1 && two < six / 2;
}

// ns that each thread of the process waited for a core, by its number; none where the system does not tell.
std::map<std::string, long long> waited() {
    std::map<std::string, long long> all;
    std::error_code error;
    for (const auto & thread : std::filesystem::directory_iterator("/proc/self/task", error)) {
        long long ran = 0, ns = 0;
        if (std::ifstream(thread.path() / "schedstat") >> ran >> ns) {
            all[thread.path().filename()] = ns;
        }
    }
    return all;
}

// Ticks that a virtual machine's host kept its cores to itself: to a thread that looks like work of its own.
long long stolen() {
    long long ticks = 0;
    std::FILE * file = std::fopen("/proc/stat", "r");
    if (file) {
        if (std::fscanf(file, "cpu %*d %*d %*d %*d %*d %*d %*d %lld", &ticks) != 1) {
            ticks = 0;
        }
        std::fclose(file);
    }
    return ticks;
}

// A second thread takes part in all graphs although its part takes longer than a time slice, and the first one's does not:
// that is no busy machine. Where it is one, or was one a moment ago, nothing can be said; it is tried for a while.
bool all_take_part_where_one_takes_long() {
    constexpr int k_graphs = 20, k_tries = 4; // more graphs than it takes to try one thread on a busy machine
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(15);
    for (int tries = 0; std::chrono::steady_clock::now() < until;) {
        const long long   stolen_before = stolen();
        long long         disturbed = 0; // of those who are there at its end: the caller and its helper too
        std::atomic<bool> joined { false };
        int alone = 0;
        const part uneven = [&](int ith, int nth) {
            joined = joined || nth > 1;
            const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(nth == 1 ? 6000 : ith == 1 ? 3000 : 200);
            while (std::chrono::steady_clock::now() < end) {
            }
        };
        std::thread([&] { // its crew knows nothing of other loads
            const auto before = waited();
            for (int g = 0; g < k_graphs; ++g) {
                joined = false;
                compute(3, 2, &uneven);
                alone += !joined;
            }
            for (const auto & [thread, ns] : waited()) { // an earlier helper may have ended meanwhile
                const auto known = before.find(thread);
                disturbed += ns - (known == before.end() ? 0 : known->second);
            }
        }).join();
        if (waited().empty()) {
            break;
        }
        if (alone == 0) {
            return true;
        }
        if (disturbed < 500000 && stolen() == stolen_before) {
            std::printf("%d of %d uneven graphs were computed by one thread\n", alone, k_graphs);
            if (++tries == k_tries) {
                return false;
            }
            std::this_thread::sleep_for(std::chrono::seconds(2)); // what it met may last for a while
        }
    }
    std::printf("uneven graphs: the machine is too busy to tell\n");
    return true;
}

#endif

bool check(const char * what, bool passed) {
    if (!passed) {
        std::printf("FAILED: %s\n", what);
    }
    return passed;
}

} // namespace

int main(int argc, char ** argv) {
    const int times = argc > 1 ? std::atoi(argv[1]) : 400;
    bool passed = true;
#if defined(__linux__)
    // First: what comes then makes the machine a busy one.
    passed &= check("all take part where one takes long", all_take_part_where_one_takes_long());
#endif
    const std::vector<float> wanted = graph().compute(1);
    std::atomic<int> wrong { 0 };
    std::vector<std::thread> callers;
    for (int c = 0; c < k_callers; ++c) {
        callers.emplace_back([&, c] {
            for (int i = 0; i < times; ++i) {
                graph g;
                wrong += !same(g.compute(1 + (i + c) % k_most_threads), wanted);
                int left = i % (2 * k_layers); // nodes after which it is aborted
                const auto abort = [](void * data) { return --*(int *) data < 0; };
                const auto found = g.compute(2 + c, abort, &left);
                wrong += !found.empty() && !same(found, wanted);
            }
        });
    }
    for (std::thread & caller : callers) {
        caller.join();
    }
    if (wrong > 0) {
        std::printf("%d of %d graphs have wrong values\n", wrong.load(), 2 * k_callers * times);
        return 1;
    }
    passed &= check("somebody joins", somebody_joins());
    passed &= check("graphs within graphs", inner_graphs_are_right(wanted));
#if defined(__linux__)
    passed &= check("somebody joins after a fork", joins_in_a_fork());
    passed &= check("nobody wakes for nothing", few_wake_for_little());
    passed &= check("nobody is left behind", nobody_is_left_behind());
#endif
    std::printf(passed ? "all passed\n" : "failed\n");
    return passed ? 0 : 1;
}
