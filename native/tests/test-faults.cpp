// What a pair does on a device that lacks operations, fails, throws or is stopped in the middle of a pass; and whether
// what devices compute as one is found in the graphs that they get.
//
// The device is the CPU under another name and kind, with a will of its own: the program decides what it can compute
// and when it fails. Answers are compared with those of the CPU as it is.
//
//     test-faults TARGET.gguf DRAFT.gguf

#include "ggml-backend-impl.h"
#include "ggml-cuda/gated_delta_net_match.h"
#include "ggml-cuda/graph_scope.h"
#include "ggml-cuda/norm_match.h"
#include "ggml-impl.h"
#include "llama-ext.h"
#include "llama.h"
#include "slipstream.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <map>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static const char * k_name = "Faulty0";

// Of C++, on this thread, also in the library: none while it is set; and pieces before one that cannot be had, or below 0.
static thread_local bool t_no_memory = false;
static thread_local long t_left = -1;

void * operator new(size_t size) {
    const bool none = t_no_memory || t_left == 0;
    t_left -= t_left >= 0;
    void * memory = none ? nullptr : malloc(size > 0 ? size : 1);
    if (!memory) {
        throw std::bad_alloc();
    }
    return memory;
}
void operator delete(void * memory) noexcept { free(memory); }
void operator delete(void * memory, size_t) noexcept { free(memory); }

static struct {
    std::set<ggml_op>      lacks;           // operations it does not have
    std::map<ggml_op, int> computed;        // nodes by operation
    int  matches     = 0;                   // inputs of a delta net that can be computed as one
    int  norms       = 0;                   // before products, which read them quantized
    int  gated_norms = 0;
    std::map<int, int> products;            // runs of products of one input, side by side, by their length
    int  passes      = 0;                   // graphs until `then`, if above 0
    ggml_status then = GGML_STATUS_SUCCESS; // what that graph ends with, half-way
    slip_pair * cancels = nullptr;          // cancelled then, as by another thread
    bool undoes  = false;                   // ... which takes it back at once
    bool asks    = false;                   // then, for more memory than there is, and throws
    bool says    = false;                   // then, that it cannot allocate, and throws: but it asked for nothing
    bool full    = false;                   // has no room for a buffer
    int  throws      = 0;                   // on waiting: 1 an exception, 2 something else
    bool absent      = false;               // cannot be opened
    bool rough_sums  = false;               // cumulative sums that do not grow evenly, as a parallel scan's
} g_faulty;

static ggml_backend_dev_t    g_cpu;
static ggml_backend_device   g_device;
static ggml_backend_i        g_cpu_backend;
static ggml_backend_buffer_type g_room; // the CPU's buffers, as long as there is room

static void faulty_synchronize(ggml_backend_t) {
    if (g_faulty.throws == 1) {
        throw std::runtime_error("the device is lost");
    }
    if (g_faulty.throws == 2) {
        throw 2;
    }
}

// Behind every entry that weighs nothing a sum too large, by more than the next entry weighs.
static void make_rough(const ggml_tensor * sums) {
    const ggml_tensor * weights = sums->src[0];
    for (int64_t row = 0; row < ggml_nrows(sums); ++row) {
        float *       sum    = (float *) sums->data + row*sums->ne[0];
        const float * weight = (const float *) weights->data + row*sums->ne[0];
        for (int64_t i = 0; i + 1 < sums->ne[0]; ++i) {
            sum[i] += weight[i] > 0 ? 0 : 0.3f;
        }
    }
}

// Counts what backends look for in a graph.
static void count_patterns(const ggml_cgraph * graph) {
    const ggml_tensor * input = nullptr;
    int n = 0; // products of it, side by side but for views
    const auto end_run = [&] {
        g_faulty.products[n]++;
        n = 0;
    };
    for (int i = 0; i < graph->n_nodes; ++i) {
        const ggml_tensor * node = graph->nodes[i];
        if (node->op == GGML_OP_RESHAPE || node->op == GGML_OP_VIEW || node->op == GGML_OP_PERMUTE || node->op == GGML_OP_TRANSPOSE) {
            continue;
        }
        if (node->op != GGML_OP_MUL_MAT || node->src[1] != input) {
            end_run();
        }
        input = node->op == GGML_OP_MUL_MAT ? node->src[1] : nullptr;
        n    += node->op == GGML_OP_MUL_MAT;

        ggml_cuda_gdn_inputs match;
        g_faulty.matches += node->op == GGML_OP_GET_ROWS && gdn_inputs_match(graph, i, match);
        ggml_cuda_norm norm;
        if (node->op == GGML_OP_RMS_NORM && norm_match(graph, i, norm)) {
            (norm.gate ? g_faulty.gated_norms : g_faulty.norms)++;
        }
    }
    end_run();
}

static ggml_status faulty_compute(ggml_backend_t backend, ggml_cgraph * graph) {
    const bool ends = g_faulty.passes > 0 && --g_faulty.passes == 0 && g_faulty.then != GGML_STATUS_SUCCESS;
    const int  n    = ends ? ggml_graph_n_nodes(graph)/2 : ggml_graph_n_nodes(graph);
    count_patterns(graph);
    for (int i = 0; i < n; ++i) {
        ggml_tensor * node = ggml_graph_node(graph, i);
        g_faulty.computed[node->op]++;
        ggml_cgraph one = ggml_graph_view(graph, i, i + 1);
        const ggml_status status = g_cpu_backend.graph_compute(backend, &one);
        if (status != GGML_STATUS_SUCCESS) {
            return status;
        }
        if (node->op == GGML_OP_CUMSUM && g_faulty.rough_sums) {
            make_rough(node);
        }
    }
    if (ends && g_faulty.asks && !ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), SIZE_MAX/4)) {
        throw std::runtime_error("ErrorOutOfDeviceMemory");
    }
    if (ends && g_faulty.says) {
        throw std::runtime_error("failed to allocate a name");
    }
    if (ends && g_faulty.cancels) {
        slip_cancel(g_faulty.cancels, 1);
        slip_cancel(g_faulty.cancels, !g_faulty.undoes);
    }
    return ends ? g_faulty.then : GGML_STATUS_SUCCESS;
}

static ggml_backend_t faulty_init(ggml_backend_dev_t, const char * params) {
    if (g_faulty.absent) {
        return nullptr;
    }
    ggml_backend_t backend = g_cpu->iface.init_backend(g_cpu, params);
    g_cpu_backend = backend->iface;
    backend->iface.synchronize   = faulty_synchronize;
    backend->iface.graph_compute = faulty_compute;
    backend->device              = &g_device;
    return backend;
}

static void plug_in_device() {
    g_cpu    = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    g_device = *g_cpu;
    g_room   = *ggml_backend_cpu_buffer_type();
    g_room.device = &g_device;
    g_room.iface.alloc_buffer = [](ggml_backend_buffer_type_t, size_t size) {
        return g_faulty.full ? nullptr : ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), size);
    };
    g_device.iface.get_buffer_type = [](ggml_backend_dev_t) { return &g_room; };
    g_device.iface.get_name     = [](ggml_backend_dev_t) { return k_name; };
    g_device.iface.get_type     = [](ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_GPU; };
    g_device.iface.init_backend = faulty_init;
    g_device.iface.supports_op  = [](ggml_backend_dev_t, const ggml_tensor * op) {
        return g_faulty.lacks.count(op->op) == 0 && g_cpu->iface.supports_op(g_cpu, op);
    };
    g_device.iface.get_props    = [](ggml_backend_dev_t dev, ggml_backend_dev_props * props) {
        g_cpu->iface.get_props(g_cpu, props);
        props->name = k_name;
        props->type = GGML_BACKEND_DEVICE_TYPE_GPU;
        GGML_UNUSED(dev);
    };
    ggml_backend_device_register(&g_device);
}

// --- one pair ----------------------------------------------------------------

static int g_failed = 0;

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            printf("  line %d: %s\n", __LINE__, #condition); \
            g_failed++; \
        } \
    } while (0)

static slip_error g_error;

static slip_status try_load(const char * target, const char * draft, const char * device, slip_pair ** pair) {
    slip_load_options options = {};
    options.size      = sizeof(options);
    options.target    = target;
    options.draft     = draft;
    options.device    = device;
    options.n_ctx     = 512;
    options.n_ubatch  = 64;
    options.n_threads = 1;
    return slip_load(&options, pair, &g_error);
}

static slip_pair * load(const char * target, const char * draft, const char * device) {
    slip_pair * pair = nullptr;
    if (try_load(target, draft, device, &pair) != SLIP_OK) {
        printf("cannot load: %s\n", g_error.message);
        exit(1);
    }
    return pair;
}

static slip_status prompt(slip_pair * pair, int32_t * token) {
    std::vector<int32_t> tokens;
    for (int32_t t = 40; t < 140; ++t) {
        tokens.push_back(t);
    }
    slip_prompt_options options = {};
    options.size           = sizeof(options);
    options.tokens         = tokens.data();
    options.n_tokens       = (int32_t) tokens.size();
    options.drafting       = 1;
    options.sampling.size  = sizeof(options.sampling);
    options.sampling.top_p = 1;
    options.sampling.repeat_penalty = 1;
    slip_prompt_result result = {};
    result.size = sizeof(result);
    const slip_status status = slip_prompt(pair, &options, &result, &g_error);
    *token = result.token;
    return status;
}

static slip_status round_of(slip_pair * pair, std::vector<int32_t> & answer, int32_t n_draft = 7) {
    slip_round_result result = {};
    result.size = sizeof(result);
    const slip_status status = slip_round(pair, n_draft, 0, nullptr, 0, &result, &g_error);
    if (status == SLIP_OK) {
        answer.insert(answer.end(), result.emitted, result.emitted + result.n_accepted + 1);
    }
    return status;
}

static std::vector<int32_t> answer_of(slip_pair * pair, bool from_nothing = true) {
    constexpr size_t n = 60;
    std::vector<int32_t> answer(1);
    if (from_nothing) {
        slip_reset(pair);
    }
    if (prompt(pair, &answer[0]) != SLIP_OK) {
        return {};
    }
    while (answer.size() < n) {
        if (round_of(pair, answer) != SLIP_OK) {
            return {};
        }
    }
    answer.resize(n);
    return answer;
}

// --- what is promised --------------------------------------------------------

// A pass takes tokens from another graph once, also if it failed before it got that far.
static void test_tokens_of_a_refused_pass(const char * target) {
    llama_model_params model_params = llama_model_default_params();
    model_params.n_gpu_layers = 0;
    llama_model * model = llama_model_load_from_file(target, model_params);
    llama_context_params params = llama_context_default_params();
    params.n_ctx   = 64;
    params.n_batch = 8;
    llama_context * ctx = llama_init_from_model(model, params);

    std::vector<llama_token> tokens(9, 1);
    ggml_tensor elsewhere = {};
    elsewhere.type  = GGML_TYPE_I32;
    elsewhere.ne[0] = 3;
    elsewhere.ne[1] = elsewhere.ne[2] = elsewhere.ne[3] = 1;
    llama_set_inp_tokens(ctx, llama_get_backend(ctx, g_cpu), &elsewhere);
    llama_batch refused = llama_batch_get_one(tokens.data(), 1);
    llama_token wrong   = 1 << 30;
    refused.token = &wrong;
    CHECK(llama_decode(ctx, refused) != 0);
    CHECK(llama_decode(ctx, llama_batch_get_one(tokens.data(), 1)) == 0);

    llama_free(ctx);
    llama_model_free(model);
}

// Devices that share the layers (-sm tensor) split the states as the base does: it ended in an assertion on the trace,
// when the context was made. (It goes no further: the buffers of a CPU cannot stand for those of two devices.)
static void test_shared_layers(const char * target) {
    ggml_backend_dev_t devices[] = { &g_device, &g_device, nullptr };
    llama_model_params model_params = llama_model_default_params();
    model_params.devices      = devices;
    model_params.n_gpu_layers = 99;
    model_params.split_mode   = LLAMA_SPLIT_MODE_TENSOR;
    llama_model * model = llama_model_load_from_file(target, model_params);
    CHECK(model != nullptr);
    llama_context_params params = llama_context_default_params();
    params.n_ctx    = 64;
    params.n_rs_seq = 7;
    llama_context * ctx = model ? llama_init_from_model(model, params) : nullptr;
    CHECK(ctx != nullptr);
    llama_free(ctx);
    llama_model_free(model);
}

static void test_choosing(int32_t n_rows) {
    slip_sampling sampling = {};
    sampling.size        = sizeof(sampling);
    sampling.verify      = SLIP_VERIFY_GPU_SAMPLE;
    sampling.temperature = 1;
    sampling.top_p       = 1;
    sampling.min_p       = 0.5f;
    sampling.repeat_penalty = 1;
    const slip_past past = {};
    const std::vector<float> row = { 1, -9, -9, 1, -9, 1, -9, 1, -9 };
    std::vector<float> logits;
    for (int32_t i = 0; i < n_rows; ++i) {
        logits.insert(logits.end(), row.begin(), row.end());
    }
    std::vector<int32_t> tokens(n_rows, -1);
    const auto choose = [&] {
        return slip_choose(k_name, &sampling, &past, logits.data(), (int32_t) row.size(), n_rows, 0, tokens.data(), &g_error);
    };

    g_faulty.rough_sums = true;
    CHECK(choose() == SLIP_OK);
    g_faulty.rough_sums = false;
    for (const int32_t token : tokens) {
        if (token < 0 || token >= (int32_t) row.size() || row[token] < 0) {
            printf("  token %d weighs nothing\n", token);
            g_failed++;
            break;
        }
    }

    g_faulty.absent = true;
    CHECK(choose() == SLIP_ERROR_DEVICE);
    CHECK(strstr(g_error.message, k_name) != nullptr);
    g_faulty.absent = false;
}

// Whether a context of CUDA that ends now is held up, by a capture that is not over. Who expects that it is not gives
// a new thread the time that it needs to run on a busy machine.
static bool is_held_up(std::chrono::milliseconds patience = std::chrono::seconds(20)) {
    std::packaged_task<void()> ends([] { ggml_cuda_graph_scope::no_captures(); });
    std::future<void> ended = ends.get_future();
    std::thread(std::move(ends)).detach();
    return ended.wait_for(patience) != std::future_status::ready;
}

static void test_graph_scope() {
    CHECK(!ggml_cuda_graph_scope::active() && !is_held_up());
    for (const bool captures : { false, true }) {
        try {
            ggml_cuda_graph_scope graph;
            if (captures) {
                graph.capture();
            }
            CHECK(captures ? is_held_up(std::chrono::milliseconds(500)) : !is_held_up());
            CHECK(ggml_cuda_graph_scope::active());
            CHECK(!std::async(std::launch::async, [] { return ggml_cuda_graph_scope::active(); }).get());
            throw std::bad_alloc();
        } catch (const std::bad_alloc &) {
            CHECK(!ggml_cuda_graph_scope::active() && !is_held_up());
        }
    }
}

int main(int argc, char ** argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s TARGET.gguf DRAFT.gguf\n", argv[0]);
        return 2;
    }
    const char * target = argv[1];
    const char * draft  = argv[2];
    CHECK(slip_device_count() > 0); // starts the backends
    plug_in_device();

    slip_pair * cpu = load(target, draft, nullptr);
    const std::vector<int32_t> wanted = answer_of(cpu);
    CHECK(!wanted.empty());
    slip_free(cpu);

    const auto section = [](const char * what) { printf("%s\n", what); fflush(stdout); };

    section("a device with all operations");
    slip_pair * pair = load(target, draft, k_name);
    g_faulty.computed.clear();
    CHECK(answer_of(pair) == wanted);
    CHECK(g_faulty.computed[GGML_OP_GATED_DELTA_NET_TRACE] > 0);
    CHECK(g_faulty.computed[GGML_OP_GATED_DELTA_NET] == 0);

    section("what kernels compute as one is found in each layer");
    {
        std::vector<int32_t> answer(1);
        slip_reset(pair);
        CHECK(prompt(pair, &answer[0]) == SLIP_OK);
        g_faulty.computed.clear();
        g_faulty.matches = g_faulty.norms = g_faulty.gated_norms = 0;
        g_faulty.products.clear();
        for (const int n_draft : { 0, 1, 7, 15 }) {
            CHECK(round_of(pair, answer, n_draft) == SLIP_OK);
        }
        const int n_layers = g_faulty.computed[GGML_OP_GATED_DELTA_NET_TRACE]; // with a delta net; a third as many without
        printf("  %d in %d layers; products side by side: %d of four, %d of three; norms before products: %d, and %d gated\n",
            g_faulty.matches, n_layers, g_faulty.products[4], g_faulty.products[3], g_faulty.norms, g_faulty.gated_norms);
        CHECK(n_layers > 0 && g_faulty.matches == n_layers);
        CHECK(g_faulty.products[4] == n_layers && g_faulty.products[3] >= n_layers/3);
        CHECK(g_faulty.norms >= 2*(n_layers + n_layers/3) && g_faulty.gated_norms == n_layers); // two in each layer
    }

    section("a pass that is stopped in its middle leaves nothing behind");
    for (const ggml_status status : { GGML_STATUS_ABORTED, GGML_STATUS_FAILED }) {
        for (const int passes : { 1, 2 }) { // draft, verify
            std::vector<int32_t> answer(1);
            slip_reset(pair);
            CHECK(prompt(pair, &answer[0]) == SLIP_OK);
            CHECK(round_of(pair, answer) == SLIP_OK);
            g_faulty.passes  = passes;
            g_faulty.then    = status;
            g_faulty.cancels = status == GGML_STATUS_ABORTED ? pair : nullptr;
            CHECK(round_of(pair, answer) == (g_faulty.cancels ? SLIP_CANCELLED : SLIP_ERROR_DEVICE));
            CHECK(g_faulty.passes == 0);
            slip_cancel(pair, 0);
            if (slip_position(pair) == 0) {
                CHECK(round_of(pair, answer) == SLIP_ERROR_OPTION);
            }
            CHECK(answer_of(pair, /*from_nothing*/ false) == wanted);
        }
    }

    section("a pass that was stopped is no broken device, though nobody wants it stopped any more");
    {
        std::vector<int32_t> answer(1);
        slip_reset(pair);
        CHECK(prompt(pair, &answer[0]) == SLIP_OK);
        g_faulty.passes = 1;
        g_faulty.then   = GGML_STATUS_ABORTED;
        g_faulty.cancels = pair;
        g_faulty.undoes = true;
        CHECK(round_of(pair, answer, 0) == SLIP_CANCELLED);
        g_faulty.undoes = false;
        CHECK(answer_of(pair, /*from_nothing*/ false) == wanted);
    }

    section("a feed of the drafter that is stopped loses no token");
    {
        std::vector<int32_t> answer(1);
        slip_reset(pair);
        CHECK(prompt(pair, &answer[0]) == SLIP_OK);
        for (int i = 0; i < 16; ++i) {
            CHECK(round_of(pair, answer, 0) == SLIP_OK); // each leaves a row of features, as many as the queue holds
        }
        const int32_t held = slip_position(pair);
        g_faulty.passes  = 1;
        g_faulty.then    = GGML_STATUS_ABORTED;
        g_faulty.cancels = pair;
        CHECK(round_of(pair, answer, 0) == SLIP_CANCELLED);
        CHECK(g_faulty.passes == 0 && slip_position(pair) == held); // it was no verify
        g_faulty.cancels = nullptr;
        slip_cancel(pair, 0);
        while (answer.size() < wanted.size() && round_of(pair, answer) == SLIP_OK) {
        }
        answer.resize(wanted.size());
        CHECK(answer == wanted);
    }

    section("a graph of the drafter that could not be built is built again");
    {
        const std::vector<int32_t> tokens(20, 40);
        slip_info info = {};
        info.size = sizeof(info);
        CHECK(slip_get_info(pair, &info, &g_error) == SLIP_OK);
        std::vector<float> first(size_t(info.block) * info.n_embd_draft), second = first;
        const auto hidden = [&](std::vector<float> & to) {
            return slip_eval_draft(pair, tokens.data(), (int32_t) tokens.size(), 5, nullptr, to.data(), &g_error);
        };
        g_faulty.lacks = { GGML_OP_MUL_MAT };
        CHECK(hidden(first) == SLIP_ERROR_DEVICE);
        g_faulty.lacks = {};
        CHECK(hidden(first) == SLIP_OK && hidden(second) == SLIP_OK && first == second);
        CHECK(answer_of(pair) == wanted);
    }

    section("a device that throws");
    for (const int what : { 1, 2 }) {
        std::vector<int32_t> answer(1);
        slip_reset(pair);
        CHECK(prompt(pair, &answer[0]) == SLIP_OK);
        g_faulty.throws = what;
        CHECK(round_of(pair, answer) == SLIP_ERROR_INTERNAL);
        CHECK(g_error.message[0] != 0);
        slip_reset(pair);
        g_faulty.throws = 0;
        CHECK(answer_of(pair) == wanted);
    }
    slip_free(pair);

    section("out of memory is what could not be had, not a word of a message");
    pair = load(target, draft, k_name);
    for (const int passes : { 1, 2 }) { // draft, verify
        for (const slip_status wanted_status : { SLIP_ERROR_MEMORY, SLIP_ERROR_INTERNAL }) {
            std::vector<int32_t> answer(1);
            slip_reset(pair);
            CHECK(prompt(pair, &answer[0]) == SLIP_OK);
            CHECK(round_of(pair, answer) == SLIP_OK);
            g_faulty.passes = passes;
            g_faulty.then   = GGML_STATUS_FAILED;
            g_faulty.asks   = wanted_status == SLIP_ERROR_MEMORY;
            g_faulty.says   = !g_faulty.asks;
            CHECK(round_of(pair, answer) == wanted_status);
            CHECK(g_faulty.passes == 0);
            g_faulty.asks = g_faulty.says = false;
            CHECK(answer_of(pair, /*from_nothing*/ false) == wanted);
        }
        std::vector<int32_t> answer(1);
        slip_reset(pair);
        CHECK(prompt(pair, &answer[0]) == SLIP_OK);
        g_faulty.passes = passes;
        g_faulty.then   = GGML_STATUS_ALLOC_FAILED;
        CHECK(round_of(pair, answer) == SLIP_ERROR_MEMORY);
        CHECK(answer_of(pair, /*from_nothing*/ false) == wanted);
    }
    slip_free(pair);
    g_faulty.then = GGML_STATUS_SUCCESS;
    g_faulty.full = true;
    CHECK(try_load(target, draft, k_name, &pair) == SLIP_ERROR_MEMORY);
    g_faulty.full = false;

    section("a device that is gone is no broken file");
    g_faulty.absent = true;
    CHECK(try_load(target, draft, k_name, &pair) == SLIP_ERROR_DEVICE);
    g_faulty.absent = false;

    section("a device that throws when it is given back");
    pair = load(target, draft, k_name);
    CHECK(answer_of(pair) == wanted);
    g_faulty.throws = 1;
    slip_free(pair);
    g_faulty.throws = 0;

    section("a device without the traced delta net keeps the base's fused one");
    g_faulty.lacks = { GGML_OP_GATED_DELTA_NET_TRACE };
    pair = load(target, draft, k_name);
    g_faulty.computed.clear();
    CHECK(answer_of(pair) == wanted);
    CHECK(g_faulty.computed[GGML_OP_GATED_DELTA_NET] > 0);
    slip_free(pair);

    section("a device with neither takes plain operations by itself");
    g_faulty.lacks = { GGML_OP_GATED_DELTA_NET_TRACE, GGML_OP_GATED_DELTA_NET };
    pair = load(target, draft, k_name);
    g_faulty.computed.clear();
    CHECK(answer_of(pair) == wanted);
    CHECK(g_faulty.computed[GGML_OP_SOLVE_TRI] > 0);
    slip_free(pair);
    g_faulty.lacks = {};

    section("devices that share the layers");
    test_shared_layers(target);

    section("a graph that fails while it is captured leaves no capture behind");
    test_graph_scope();

    section("tokens for a pass that was refused");
    test_tokens_of_a_refused_pass(target);

    section("choosing on the device");
    test_choosing(2000);

    section("no memory at any one place of a round");
    pair = load(target, draft, nullptr);
    for (long k = 0;; ++k) {
        std::vector<int32_t> answer(1);
        answer.reserve(64);
        int32_t again = -1;
        slip_reset(pair);
        CHECK(prompt(pair, &answer[0]) == SLIP_OK);
        t_left = k;
        const slip_status status = round_of(pair, answer);
        const bool reached = t_left < 0;
        t_left = -1;
        CHECK(status == SLIP_ERROR_MEMORY || status == SLIP_OK); // some do without
        CHECK(prompt(pair, &again) == SLIP_OK && again == answer[0]);
        if (!reached) {
            printf("  %ld places\n", k);
            CHECK(status == SLIP_OK && k > 0);
            break;
        }
    }
    slip_free(pair);

    section("no memory for what is to be said");
    {
        slip_device device;
        slip_error  error = {};
        t_no_memory = true;
        const slip_status status = slip_device_get(-1, &device, &error);
        bool thrown = false;
        try {
            GGML_LOG_ERROR("a line that is longer than what a text holds without memory of its own\n");
        } catch (const std::bad_alloc &) {
            thrown = true;
        }
        t_no_memory = false;
        CHECK(status == SLIP_ERROR_MEMORY && error.status == status && error.message[0] && error.remedy[0]);
        CHECK(!thrown);
    }

    printf(g_failed ? "%d failed\n" : "all passed\n", g_failed);
    return g_failed != 0;
}
