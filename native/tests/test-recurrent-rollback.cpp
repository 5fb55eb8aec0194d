// What llama_memory_seq_rm promises of a recurrent model, through llama.h alone: true means that the sequence goes on
// as if the removed tokens had never been there, false that nothing changed. (Upstream issue 26695: it returned true
// for tokens that the last pass had not written, and the state was then another one.)
//
//   test-recurrent-rollback MODEL.gguf [DEVICE]     exit code 1 if a check fails
//
// Logits are compared with those of a run that only ever decoded the tokens that are left, in a context without
// rollback. Its batches have other shapes, so sums differ in their order: the limit, of the largest logit, is 1e-5 on
// the CPU, where 6e-7 was seen, and 5e-3 where products may be of half precision; a wrong state gives 1e-1 and more.
// Flash attention is off, it alone gives 7e-4. Where both runs have batches of one shape, on the CPU the logits must
// have the same bits.

#include "environment.h"
#include "errors-only.h"
#include "random-qwen35.h"

#include "ggml-backend.h"
#include "llama-cpp.h"
#include "llama.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int    N_SEQS = 4, N_TRACE = 15, BLOCK = 16, N_UBATCH = 64, N_CTX = 2048;

using ids  = std::vector<llama_token>;
using rows = std::vector<std::vector<float>>; // logits by token

llama_model * model;
int           n_vocab;
bool          exact; // on the CPU
int           n_failed;
double        worst_error;

void check(bool ok, const std::string & what) {
    if (!ok) {
        printf("  FAIL: %s\n", what.c_str());
        n_failed++;
    }
}

// The text of a sequence is a function of its number: runs that share nothing agree on it.
ids text(int seed, int n) {
    ids out;
    uint32_t x = 2654435761u * (seed + 1);
    for (int i = 0; i < n; ++i) {
        x = 1664525u * x + 1013904223u;
        out.push_back((x >> 8) % n_vocab);
    }
    return out;
}

ids part(const ids & all, int from, int to) {
    return ids(all.begin() + from, all.begin() + to);
}

ids operator+(ids a, const ids & b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

struct run {
    llama_context_ptr ctx;
    llama_memory_t    memory;
    int               length[N_SEQS] = {};

    explicit run(int n_rs_seq = N_TRACE) {
        llama_context_params params = llama_context_default_params();
        params.n_ctx     = N_CTX * N_SEQS;
        params.n_batch   = N_CTX;
        params.n_ubatch  = N_UBATCH;
        params.n_seq_max = N_SEQS;
        params.n_rs_seq  = n_rs_seq;
        params.type_k    = GGML_TYPE_F32;
        params.type_v    = GGML_TYPE_F32;
        params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
        params.n_threads = params.n_threads_batch = 1;
        ctx.reset(llama_init_from_model(model, params));
        if (!ctx) {
            printf("no context\n");
            exit(1);
        }
        memory = llama_get_memory(ctx.get());
    }

    // Decode these tokens behind what each sequence holds, in one batch; logits by sequence and token.
    std::map<int, rows> pass(const std::map<int, ids> & tokens) {
        llama_batch batch = llama_batch_init(N_CTX, 0, 1);
        for (const auto & [seq, list] : tokens) {
            for (const llama_token token : list) {
                const int i = batch.n_tokens++;
                batch.token[i]     = token;
                batch.pos[i]       = length[seq]++;
                batch.n_seq_id[i]  = 1;
                batch.seq_id[i][0] = seq;
                batch.logits[i]    = true;
            }
        }
        std::map<int, rows> out;
        const bool ok = llama_decode(ctx.get(), batch) == 0;
        check(ok, "llama_decode failed");
        int i = 0;
        for (const auto & [seq, list] : tokens) {
            for (size_t t = 0; t < list.size(); ++t, ++i) {
                const float * logits = ok ? llama_get_logits_ith(ctx.get(), i) : nullptr;
                out[seq].push_back(logits ? std::vector<float>(logits, logits + n_vocab) : std::vector<float>(n_vocab, NAN));
            }
        }
        llama_batch_free(batch);
        return out;
    }

    rows pass(const ids & tokens, int seq = 0) { return pass(std::map<int, ids>{ { seq, tokens } })[seq]; }

    bool take_back(int n, int seq = 0) {
        const bool done = llama_memory_seq_rm(memory, seq, length[seq] - n, -1);
        length[seq] -= done ? n : 0;
        check(llama_memory_seq_pos_max(memory, seq) == length[seq] - 1, "the last position is not the expected one");
        return done;
    }
};

// The last `n` rows of a run that never took anything back.
rows cold(const ids & tokens, int n) {
    run r(0);
    const rows all = r.pass(tokens);
    return rows(all.end() - n, all.end());
}

void check_close(const rows & x, const rows & want, const std::string & what) {
    double diff = 0.0, largest = 0.0;
    for (size_t t = 0; t < want.size(); ++t) {
        for (int i = 0; i < n_vocab; ++i) {
            const double d = std::fabs(x[t][i] - want[t][i]);
            diff    = std::isnan(d) ? INFINITY : std::max(diff, d);
            largest = std::max(largest, (double) std::fabs(want[t][i]));
        }
    }
    worst_error = std::max(worst_error, diff / largest);
    check(x.size() == want.size() && diff <= (exact ? 1e-5 : 5e-3) * largest,
        what + ": logits off by " + std::to_string(diff) + ", the largest is " + std::to_string(largest));
}

void check_same(const rows & x, const rows & want, const std::string & what) {
    check_close(x, want, what);
    check(!exact || x == want, what + ": not the same bits");
}

std::string name(const char * what, int n) {
    return what + std::string(" ") + std::to_string(n);
}

// The prompt takes many micro-batches; of its end, the trace's length can be taken back and no token more.
void prompt_of_many_micro_batches() {
    const int  n   = 5 * N_UBATCH + 7;
    const ids  all = text(1, n + BLOCK), next = part(text(2, BLOCK), 0, BLOCK);
    for (const int back : { 0, 1, 2, 7, N_TRACE }) {
        run r;
        r.pass(part(all, 0, n));
        check(!r.take_back(N_TRACE + 1), "took back more than there is room for");
        check(!r.take_back(n - 1), "took back nearly all");
        check(back == 0 || r.take_back(back), name("refused", back));
        check_close(r.pass(next), cold(part(all, 0, n - back) + next, BLOCK), name("prompt, back by", back));
    }
}

// A pass of m tokens can be taken back by m, not by what older passes left in the memory.
void only_what_the_last_pass_wrote() {
    const int n   = 40;
    const ids all = text(3, n + 40), next = text(4, BLOCK);
    for (const int m : { 1, 2, 5 }) {
        run r;
        r.pass(part(all, 0, n));
        r.pass(part(all, n, n + BLOCK));
        r.pass(part(all, n + BLOCK, n + BLOCK + m));
        for (const int back : { m + 1, m + 2, N_TRACE }) {
            if (r.take_back(back)) {
                check(false, name("after a pass of", m) + name(": took back", back));
                check_close(r.pass(next), cold(part(all, 0, n + BLOCK + m - back) + next, BLOCK), "and then");
                return;
            }
        }
        check(r.take_back(m), name("refused a pass of", m));
        check_close(r.pass(next), cold(part(all, 0, n + BLOCK) + next, BLOCK), name("a whole pass taken back, of", m));
    }
}

// After a rollback what is kept of the pass may go too, if the answer is true; then it is in the past for good.
void twice() {
    const int n   = 40;
    const ids all = text(5, n + BLOCK + 1), next = text(6, BLOCK);
    for (const int more : { 1, 4, 9, 10, 15 }) {
        run r;
        r.pass(part(all, 0, n));
        r.pass(part(all, n, n + BLOCK));
        check(r.take_back(6), "refused 6");
        const int back = r.take_back(more) ? 6 + more : 6;
        check(back <= N_TRACE, name("took back 6 and then", more));
        r.pass(part(all, n + BLOCK - back, n + BLOCK - back + 1));
        check(!r.take_back(2), "took back 2 of a pass of 1");
        check_close(r.pass(next), cold(part(all, 0, n + BLOCK - back + 1) + next, BLOCK), name("6 and", more));
    }
}

// Rounds as speculative decoding makes them. What was rejected leaves no trace, and what was accepted is right.
void every_accepted_count() {
    const int n   = 40;
    const ids all = text(7, n + 3 * BLOCK);
    for (int keep = 1; keep <= BLOCK; ++keep) {
        rows got[2];
        for (int junk : { 0, 1 }) {
            run r;
            r.pass(part(all, 0, n));
            for (int round = 0, at = n; round < 2; ++round, at += keep) {
                r.pass(part(all, at, at + keep) + text(100 + 10 * junk + round, BLOCK - keep));
                check(keep == BLOCK || r.take_back(BLOCK - keep), name("refused to keep", keep));
            }
            got[junk] = r.pass(part(all, n + 2 * keep, n + 2 * keep + BLOCK));
        }
        check_close(got[0], cold(part(all, 0, n + 2 * keep + BLOCK), BLOCK), name("accepted", keep));
        check_same(got[0], got[1], name("rejected otherwise, accepted", keep));
    }
}

// Sequences in one batch, with other accepted counts in each.
void sequences_side_by_side() {
    const int keep[3][N_SEQS] = { { 16, 1, 7, 12 }, { 2, 16, 15, 1 }, { 5, 9, 16, 3 } };
    run r;
    ids held[N_SEQS];
    std::map<int, ids> batch;
    for (int seq = 0; seq < N_SEQS; ++seq) {
        held[seq] = text(10 + seq, 30 + 11 * seq);
        r.pass(held[seq], seq);
    }
    for (const auto & kept : keep) {
        for (int seq = 0; seq < N_SEQS; ++seq) {
            batch[seq] = text(200 + 7 * kept[seq] + seq, BLOCK);
        }
        auto got = r.pass(batch);
        for (int seq = 0; seq < N_SEQS; ++seq) {
            check_close(got[seq], cold(held[seq] + batch[seq], BLOCK), name("side by side, sequence", seq));
            check(kept[seq] == BLOCK || r.take_back(BLOCK - kept[seq], seq), name("refused, sequence", seq));
            held[seq] = held[seq] + part(batch[seq], 0, kept[seq]);
        }
    }
    // and two of them alone, from other cells than before
    for (const int seq : { 3, 1 }) {
        const ids next = text(300 + seq, BLOCK);
        check_close(r.pass(next, seq), cold(held[seq] + next, BLOCK), name("then alone, sequence", seq));
    }
}

// A copy of a rolled-back sequence and the original go on independently.
void copied() {
    const int n   = 40, keep = 6;
    const ids all = text(20, n + BLOCK), left = part(all, 0, n + keep);
    run r;
    r.pass(part(all, 0, n));
    r.pass(part(all, n, n + BLOCK));
    check(r.take_back(BLOCK - keep), "refused");
    llama_memory_seq_cp(r.memory, 0, 2, -1, -1);
    r.length[2] = r.length[0];

    // A state with two owners need not be divisible; but the answer must be true.
    const int back = r.take_back(1, 2) ? 1 : 0;
    const ids a = text(21, BLOCK), b = text(22, BLOCK);
    check_close(r.pass(b, 2), cold(part(left, 0, (int) left.size() - back) + b, BLOCK), "the copy");
    check_close(r.pass(a), cold(left + a, BLOCK), "the original");
    check(r.take_back(3, 2), "refused to take back of the copy");
    const ids c = text(23, BLOCK);
    check_close(r.pass(c, 2), cold(part(left, 0, (int) left.size() - back) + part(b, 0, BLOCK - 3) + c, BLOCK), "the copy, taken back");
    check_close(r.pass(c), cold(left + a + c, BLOCK), "the original afterwards");
}

// A rolled-back sequence, saved and loaded into another place, and whole contexts.
void saved_and_loaded() {
    const int n   = 40, keep = 6;
    const ids all = text(30, n + BLOCK), left = part(all, 0, n + keep), a = text(31, BLOCK), b = text(32, BLOCK);
    run r;
    r.pass(part(all, 0, n));
    r.pass(part(all, n, n + BLOCK));
    check(r.take_back(BLOCK - keep), "refused");

    std::vector<uint8_t> one(llama_state_seq_get_size(r.ctx.get(), 0)), whole(llama_state_get_size(r.ctx.get()));
    check(llama_state_seq_get_data(r.ctx.get(), one.data(), one.size(), 0) == one.size(), "saved another size");
    check(llama_state_get_data(r.ctx.get(), whole.data(), whole.size()) == whole.size(), "saved another size");
    const rows want = r.pass(a);
    check_close(want, cold(left + a, BLOCK), "the one that was saved");

    run elsewhere;
    elsewhere.pass(text(33, 50), 1);
    elsewhere.pass(text(34, 50), 3); // replaced
    check(llama_state_seq_set_data(elsewhere.ctx.get(), one.data(), one.size(), 3) != 0, "not loaded");
    elsewhere.length[3] = n + keep;
    check_same(elsewhere.pass(a, 3), want, "loaded into another sequence");
    check(elsewhere.take_back(5, 3), "refused of the loaded sequence");
    check_close(elsewhere.pass(b, 3), cold(left + part(a, 0, BLOCK - 5) + b, BLOCK), "the loaded one, taken back");
    check_close(elsewhere.pass(b, 1), cold(text(33, 50) + b, BLOCK), "its neighbour");

    run again;
    check(llama_state_set_data(again.ctx.get(), whole.data(), whole.size()) != 0, "not loaded");
    again.length[0] = n + keep;
    const int back = again.take_back(2) ? 2 : 0; // what is left of the pass may have been saved, too
    check_close(again.pass(a), cold(part(left, 0, (int) left.size() - back) + a, BLOCK), "a loaded context");
}

// A sequence that is removed leaves nothing to the next one with its number.
void removed() {
    const ids old = text(40, 60), next = text(41, BLOCK);
    run r;
    r.pass(old);
    check(r.take_back(4), "refused");
    check(llama_memory_seq_rm(r.memory, 0, -1, -1), "refused to remove all");
    r.length[0] = 0;
    check_close(r.pass(next), cold(next, BLOCK), "after all was removed");
}

// A pass that is stopped in its middle leaves states that no rollback leads out of: their sequence is gone, and says so.
// Only the CPU asks whether to stop.
void stopped() {
    if (!exact) {
        return;
    }
    const ids old = text(50, 60), a = text(51, BLOCK), next = text(52, BLOCK), beside = text(53, 40);
    struct counter { int asked, limit; } nodes = { 0, 1 << 30 };
    run r;
    llama_set_abort_callback(r.ctx.get(), [](void * data) {
        auto & nodes = *static_cast<counter *>(data);
        return ++nodes.asked > nodes.limit;
    }, &nodes);
    r.pass(beside, 1);
    r.pass(old);
    nodes.asked = 0;
    r.pass(a);
    for (const int part : { 1, 2, 3 }) {
        nodes.limit = nodes.asked*part/4;
        nodes.asked = 0;
        llama_batch batch = llama_batch_get_one(const_cast<llama_token *>(next.data()), (int) next.size());
        check(llama_decode(r.ctx.get(), batch) == 2, "not stopped");
        check(llama_memory_seq_pos_max(r.memory, 0) == -1, "a stopped sequence still has positions");
        nodes.limit = 1 << 30;
        r.length[0] = 0;
        check_close(r.pass(old + next), cold(old + next, 60 + BLOCK), "after it was stopped");
        nodes.asked = 0;
        r.pass(a);
    }
    check_close(r.pass(a, 1), cold(beside + a, BLOCK), "its neighbour");
}

// A prompt takes the most operations where the rollback is one of plain operations: as many layers as the largest have.
void many_layers() {
    const std::filesystem::path path = std::filesystem::temp_directory_path() / ("many-layers-" + std::to_string(std::random_device()()) + ".gguf");
    const qwen35_shape shape = { 256, 256, 2, 1, 256, 1, 1, 128, 256 };
    check(write_random_qwen35(path.string(), shape, GGML_TYPE_F32, 64, 4), "cannot write");
    set_environment("LLAMA_GDN_CHUNKED", "1");
    {
        const llama_model_ptr large(llama_model_load_from_file(path.string().c_str(), llama_model_default_params()));
        llama_context_params params = llama_context_default_params();
        params.n_ctx    = 1024;
        params.n_batch  = params.n_ubatch = 512;
        params.n_rs_seq = N_TRACE;
        const llama_context_ptr ctx(large ? llama_init_from_model(large.get(), params) : nullptr);
        check(ctx != nullptr, "no context");
        ids prompt(512, 7);
        check(ctx && llama_decode(ctx.get(), llama_batch_get_one(prompt.data(), int(prompt.size()))) == 0, "llama_decode failed");
    }
    set_environment("LLAMA_GDN_CHUNKED", nullptr);
    std::filesystem::remove(path);
}

} // namespace

int main(int argc, char ** argv) {
    if (argc < 2) {
        printf("usage: %s MODEL.gguf [DEVICE]\n", argv[0]);
        return 2;
    }
    log_errors_only();
    ggml_backend_load_all();

    ggml_backend_dev_t device = argc > 2 ? ggml_backend_dev_by_name(argv[2]) : ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (!device) {
        printf("there is no device %s\n", argv[2]);
        return 2;
    }
    exact = ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU;

    llama_model_params params = llama_model_default_params();
    ggml_backend_dev_t devices[] = { device, nullptr };
    params.devices      = exact ? nullptr : devices;
    params.n_gpu_layers = exact ? 0 : 99;
    llama_model_ptr loaded(llama_model_load_from_file(argv[1], params));
    if (!loaded) {
        return 2;
    }
    model   = loaded.get();
    n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));

    const std::vector<std::pair<const char *, void (*)()>> cases = {
        { "prompt of many micro-batches",  prompt_of_many_micro_batches },
        { "only what the last pass wrote", only_what_the_last_pass_wrote },
        { "twice",                         twice },
        { "every accepted count",          every_accepted_count },
        { "sequences side by side",        sequences_side_by_side },
        { "copied",                        copied },
        { "saved and loaded",              saved_and_loaded },
        { "removed",                       removed },
        { "stopped",                       stopped },
        { "many layers",                   many_layers },
    };
    for (const auto & [title, test] : cases) {
        const int before = n_failed;
        worst_error = 0.0;
        test();
        printf("%-32s %s, error %.1e\n", title, n_failed == before ? "ok" : "FAILED", worst_error);
        fflush(stdout);
    }
    return n_failed > 0;
}
