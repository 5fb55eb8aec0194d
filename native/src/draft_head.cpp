#include "draft_head.h"

#include "failure.h"

#include "ggml-backend.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace {

constexpr int32_t k_piece = 1024; // rows that are brought at a time, whole tiles

// CPU_KQUANTS lays rows out in tiles, and takes tiles. Where another buffer type repacks them it takes a matrix as a whole:
// rows of such a head lie as they are in the file.
ggml_backend_buffer_type_t buffer_type(const ggml_tensor * head, ggml_backend_t backend) {
    ggml_backend_buffer_type_t of_head = ggml_backend_buffer_get_type(head->buffer);
    return std::strcmp(ggml_backend_buft_name(of_head), "CPU_KQUANTS") == 0 ? of_head : ggml_backend_get_default_buffer_type(backend);
}

} // namespace

ggml_backend_buffer_ptr slip_allocate(ggml_context * ctx, ggml_backend_buffer_type_t type, bool measure) {
    if (!measure) {
        return ggml_backend_buffer_ptr(ggml_backend_alloc_ctx_tensors_from_buft(ctx, type));
    }
    ggml_backend_buffer_ptr none(ggml_backend_buft_alloc_buffer(type, 0));
    for (ggml_tensor * t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        t->buffer = none.get();
    }
    return none;
}

slip_draft_head::slip_draft_head(ggml_tensor * head, const slip_gguf_file & file, const char * name, const llama_vocab * vocab, ggml_backend_t backend,
        int32_t rows, bool measure) : head_(head), backend_(backend) {
    const auto n_vocab = static_cast<int32_t>(head->ne[1]);
    const int32_t n = slip_draft_vocabulary::rows(n_vocab, rows);
    if (n >= n_vocab || !gather(n, measure) || measure) {
        return;
    }
    source_     = std::make_unique<slip_tensor_file>(file.open(name));
    vocabulary_ = std::make_unique<slip_draft_vocabulary>(vocab, n);
    bring(0, n);
}

// Makes room for the rows. False: the backend cannot look up whose they are.
bool slip_draft_head::gather(int32_t rows, bool measure) {
    ggml_backend_buffer_type_t types[] = { buffer_type(head_, backend_), ggml_backend_get_default_buffer_type(backend_) };
    for (ggml_context_ptr * context : { &tensors_, &tokens_tensor_ }) {
        context->reset(ggml_init({ ggml_tensor_overhead() * 4, nullptr, /*no_alloc*/ true }));
    }
    ggml_tensor * few    = ggml_new_tensor_2d(tensors_.get(), head_->type, head_->ne[0], rows);
    ggml_tensor * tokens = ggml_new_tensor_2d(tokens_tensor_.get(), GGML_TYPE_I32, 1, rows);
    ggml_context_ptr trial(ggml_init({ ggml_tensor_overhead() * 4, nullptr, /*no_alloc*/ true }));
    if (!ggml_backend_supports_op(backend_, ggml_get_rows(trial.get(), tokens, ggml_new_tensor_1d(trial.get(), GGML_TYPE_I32, 1)))) {
        return false;
    }
    bytes_ = ggml_backend_alloc_ctx_tensors_from_buft_size(tensors_.get(), types[0]) +
             ggml_backend_alloc_ctx_tensors_from_buft_size(tokens_tensor_.get(), types[1]);
    memory_        = slip_allocate(tensors_.get(), types[0], measure);
    tokens_memory_ = slip_allocate(tokens_tensor_.get(), types[1], measure);
    if (!memory_ || !tokens_memory_) {
        throw slip_failure(SLIP_ERROR_MEMORY, "There is not enough memory for the drafter's rows of the head.", "Choose a smaller context.");
    }
    few_    = few;
    tokens_ = tokens;
    return true;
}

ggml_tensor * slip_draft_head::choose(ggml_context * ctx, ggml_tensor * hidden, bool whole) const {
    if (whole) {
        return ggml_argmax(ctx, ggml_mul_mat(ctx, head_, hidden));
    }
    return ggml_get_rows(ctx, tokens_, ggml_argmax(ctx, ggml_mul_mat(ctx, few_, hidden)));
}

// Rows [begin, end), whole tiles, from the file, a piece at a time; those of tokens that follow each other at once. Throws
// SLIP_ERROR_FILE.
void slip_draft_head::bring(int32_t begin, int32_t end) {
    const std::vector<llama_token> & tokens = vocabulary_->tokens();
    const size_t row = few_->nb[1];
    std::vector<char>    rows, run;
    std::vector<int32_t> by_token; // places
    for (int32_t first = begin; first < end; first += k_piece) {
        const int32_t last = std::min(end, first + k_piece);
        rows.resize((last - first) * row);
        by_token.resize(last - first);
        std::iota(by_token.begin(), by_token.end(), first);
        std::sort(by_token.begin(), by_token.end(), [&](int32_t a, int32_t b) { return tokens[a] < tokens[b]; });
        for (size_t from = 0; from < by_token.size();) {
            size_t to = from + 1;
            while (to < by_token.size() && tokens[by_token[to]] == tokens[by_token[to - 1]] + 1) {
                ++to;
            }
            run.resize((to - from) * row);
            source_->read(tokens[by_token[from]] * row, run.size(), run.data());
            for (size_t i = from; i < to; ++i) {
                std::memcpy(rows.data() + (by_token[i] - first) * row, run.data() + (i - from) * row, row);
            }
            from = to;
        }
        ggml_backend_tensor_set(few_, rows.data(), first * row, rows.size());
        ggml_backend_tensor_set(tokens_, tokens.data() + first, first * sizeof(llama_token), (last - first) * sizeof(llama_token));
    }
}

bool slip_draft_head::bring_changed() {
    const auto changed = vocabulary_->take_changed();
    if (changed.empty()) {
        return false;
    }
    lost_ = true; // until all of them are there
    ggml_backend_synchronize(backend_);
    try {
        for (const auto & [first, last] : changed) {
            bring(first, last);
        }
        lost_ = false;
    } catch (const slip_failure &) {
        // the file is gone: the whole head is there
    }
    return true;
}

bool slip_draft_head::see(const llama_token * tokens, int32_t n) {
    if (!vocabulary_ || lost_) {
        return false;
    }
    vocabulary_->see(tokens, n);
    return bring_changed();
}

bool slip_draft_head::record(const llama_token * chosen, int32_t n_accepted, int32_t n_drafted) {
    if (!vocabulary_ || lost_) {
        return false;
    }
    vocabulary_->record(chosen, n_accepted, n_drafted);
    return bring_changed();
}
