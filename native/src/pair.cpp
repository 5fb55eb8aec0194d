#include "pair.h"

#include "devices.h"
#include "failure.h"
#include "log.h"

#include "llama-ext.h"
#include "llama.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace {

constexpr llama_seq_id k_seq = 0;

int64_t now_us() {
    return llama_time_us();
}

} // namespace

void slip_pair::batch_free::operator()(llama_batch_ext * batch) const {
    llama_batch_ext_free(batch);
}

slip_pair::slip_pair(const slip_load_options & options) :
    models_(slip_load_models(options, cancelled_)),
    batch_target_(llama_batch_ext_init(models_.ctx_target.get())),
    batch_draft_(models_.ctx_draft ? llama_batch_ext_init(models_.ctx_draft.get()) : nullptr) {}

const llama_vocab * slip_pair::vocab() const {
    return llama_model_get_vocab(models_.target.get());
}

slip_info slip_pair::info() const {
    const llama_model * target = models_.target.get();
    slip_info out = {};
    out.size = sizeof(out);
    llama_model_meta_val_str(target, "general.name", out.name, sizeof(out.name));
    std::snprintf(out.quantisation, sizeof(out.quantisation), "%s", llama_ftype_name(llama_model_ftype(target)));
    out.target_bytes    = llama_model_size(target);
    out.draft_bytes     = models_.draft ? llama_model_size(models_.draft.get()) : 0;
    out.n_ctx           = models_.n_ctx;
    out.n_ubatch        = static_cast<int32_t>(llama_n_ubatch(models_.ctx_target.get()));
    out.n_vocab         = llama_vocab_n_tokens(vocab());
    out.n_embd          = llama_model_n_embd(target);
    out.n_embd_draft    = models_.draft ? llama_model_n_embd(models_.draft.get()) : 0;
    out.n_layers        = llama_model_n_layer(target);
    out.device          = slip_device_describe(models_.device);
    out.n_layers_device = out.n_layers; // split_mode NONE: all layers or none
    out.n_taps          = static_cast<int32_t>(models_.taps.size());
    out.block           = models_.block;
    return out;
}

// --- passes ------------------------------------------------------------------

void slip_pair::process(llama_context * ctx, llama_batch_ext * batch) {
    const int32_t reused = llama_perf_context(ctx).n_reused;
    slip_log_take_errors();
    const int32_t status = llama_process(ctx, LLAMA_PROCESS_TYPE_DECODE, batch);
    n_graphs_rebuilt_ += llama_perf_context(ctx).n_reused == reused;
    if (status == 0) {
        return;
    }
    // A pass that stopped half-way leaves the recurrent state anywhere: start from nothing.
    reset();
    if (status == 2 && cancelled_) {
        throw slip_failure(SLIP_CANCELLED, "Cancelled.");
    }
    throw slip_failure(SLIP_ERROR_DEVICE,
        "A pass failed with status " + std::to_string(status) + ": " + slip_log_take_errors(),
        "Try again with a smaller context, or on the CPU.");
}

// Runs `n` tokens behind the held ones; the last `n_outputs` of them give logits.
void slip_pair::target_pass(const llama_token * tokens, int32_t n, int32_t n_outputs) {
    llama_batch_ext * batch = batch_target_.get();
    llama_batch_ext_clear(batch);
    for (int32_t i = 0; i < n; ++i) {
        const llama_pos pos[4] = { position() + i, 0, 0, 0 };
        const int32_t index = llama_batch_ext_add_token(batch, k_seq, tokens[i]);
        if (index < 0) {
            throw slip_failure(SLIP_ERROR_OPTION, "Token " + std::to_string(tokens[i]) + " is not in the vocabulary.");
        }
        llama_batch_ext_set_pos(batch, index, pos);
        llama_batch_ext_set_output_logits(batch, index, i >= n - n_outputs);
    }
    process(models_.ctx_target.get(), batch);
    held_.insert(held_.end(), tokens, tokens + n);
    n_last_    = n;
    n_outputs_ = n_outputs;
}

const float * slip_pair::target_logits(int32_t row) {
    return llama_get_logits_ith(models_.ctx_target.get(), n_last_ - n_outputs_ + row);
}

// Feeds the drafter the tapped layers of the first `n_rows` tokens of the target's last pass.
void slip_pair::inject(int32_t n_rows) {
    llama_context * target = models_.ctx_target.get();
    const size_t n_embd = llama_model_n_embd(models_.target.get());
    const size_t n_row  = n_embd * models_.taps.size();

    features_.resize(n_row * n_rows);
    for (size_t k = 0; k < models_.taps.size(); ++k) {
        const float * layer = llama_get_embeddings_layer_inp(target, models_.taps[k]);
        for (int32_t i = 0; i < n_rows; ++i) {
            std::memcpy(features_.data() + i * n_row + k * n_embd, layer + i * n_embd, n_embd * sizeof(float));
        }
    }

    llama_batch_ext * batch = batch_draft_.get();
    llama_batch_ext_clear(batch);
    for (int32_t i = 0; i < n_rows; ++i) {
        const llama_pos p = n_injected_ + i;
        const llama_pos pos[4] = { p, p, p, 0 };
        const int32_t index = llama_batch_ext_add_embd(batch, k_seq, { features_.data() + i * n_row, 1, n_row });
        llama_batch_ext_set_pos(batch, index, pos);
    }
    process(models_.ctx_draft.get(), batch);
    n_injected_ += n_rows;
}

// One block behind the injected positions: anchor and masks, always of the trained length.
// Logits (and hidden states) come for `n_outputs` positions from `first_output` on.
void slip_pair::draft_pass(llama_token anchor, int32_t first_output, int32_t n_outputs) {
    llama_batch_ext * batch = batch_draft_.get();
    llama_batch_ext_clear(batch);
    for (int32_t i = 0; i < models_.block; ++i) {
        const llama_pos pos[4] = { n_injected_ + i, 0, 0, 0 };
        const int32_t index = llama_batch_ext_add_token(batch, k_seq, i == 0 ? anchor : models_.mask);
        llama_batch_ext_set_pos(batch, index, pos);
        llama_batch_ext_set_output_logits(batch, index, i >= first_output && i < first_output + n_outputs);
    }
    process(models_.ctx_draft.get(), batch);
    forget_draft_from(n_injected_); // the block itself is no context of later blocks
}

void slip_pair::forget_draft_from(int32_t position) {
    llama_memory_seq_rm(llama_get_memory(models_.ctx_draft.get()), k_seq, position, -1);
    n_injected_ = std::min(n_injected_, position);
}

std::vector<llama_token> slip_pair::draft(int32_t n_draft) {
    draft_pass(anchor_, 1, n_draft);
    const int32_t n_vocab = llama_vocab_n_tokens(vocab());
    std::vector<llama_token> out(n_draft);
    for (int32_t i = 0; i < n_draft; ++i) {
        const float * logits = llama_get_logits_ith(models_.ctx_draft.get(), 1 + i);
        out[i] = static_cast<llama_token>(std::max_element(logits, logits + n_vocab) - logits);
    }
    ++n_syncs_;
    return out;
}

// --- state -------------------------------------------------------------------

void slip_pair::reset() {
    llama_memory_clear(llama_get_memory(models_.ctx_target.get()), true);
    if (models_.ctx_draft) {
        llama_memory_clear(llama_get_memory(models_.ctx_draft.get()), true);
    }
    held_.clear();
    checkpoint_.clear();
    anchor_        = LLAMA_TOKEN_NULL;
    n_injected_    = 0;
    n_last_        = 0;
    n_outputs_     = 0;
    checkpoint_at_ = 0;
}

void slip_pair::throw_if_cancelled() const {
    if (cancelled_) {
        throw slip_failure(SLIP_CANCELLED, "Cancelled.");
    }
}

// Layer outputs leave the target only while a drafter wants them: plain decoding pays nothing.
void slip_pair::set_drafting(bool drafting) {
    if (drafting && !models_.draft) {
        throw slip_failure(SLIP_ERROR_OPTION, "There is no drafter.", "Load one, or decode without.");
    }
    if (drafting == drafting_) {
        return;
    }
    for (const int32_t tap : models_.taps) {
        llama_set_embeddings_layer_inp(models_.ctx_target.get(), tap, drafting);
    }
    drafting_ = drafting;
}

void slip_pair::keep_checkpoint() {
    llama_context * ctx = models_.ctx_target.get();
    checkpoint_.resize(llama_state_seq_get_size_ext(ctx, k_seq, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY));
    const size_t n = llama_state_seq_get_data_ext(
        ctx, checkpoint_.data(), checkpoint_.size(), k_seq, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY);
    checkpoint_at_ = n == checkpoint_.size() ? position() : 0;
}

// Takes the pair back to the longest state it can restore that is a prefix of `tokens` and
// leaves at least one of them to run. Returns that length.
int32_t slip_pair::rewind_to(const int32_t * tokens, int32_t n_tokens, bool drafting) {
    const int32_t n_max = std::min(position(), n_tokens - 1);
    int32_t common = static_cast<int32_t>(std::mismatch(held_.begin(), held_.begin() + n_max, tokens).first - held_.begin());
    // The drafter must know all that the target knows, or it would draft from a gap.
    const int32_t usable = drafting ? std::min(common, n_injected_) : common;

    llama_context * ctx = models_.ctx_target.get();
    llama_memory_t  mem = llama_get_memory(ctx);
    int32_t kept = 0;
    if (usable == position()) {
        kept = usable;
    } else if (checkpoint_at_ > 0 && checkpoint_at_ <= usable &&
            llama_state_seq_set_data_ext(ctx, checkpoint_.data(), checkpoint_.size(), k_seq, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY) > 0 &&
            llama_memory_seq_rm(mem, k_seq, checkpoint_at_, -1)) {
        kept = checkpoint_at_;
    }
    if (kept == 0) {
        reset();
        return 0;
    }
    held_.resize(kept);
    if (models_.draft) {
        forget_draft_from(kept);
        // A sliding window may have dropped what the shorter context needs again.
        const llama_pos first  = llama_memory_seq_pos_min(llama_get_memory(models_.ctx_draft.get()), k_seq);
        const llama_pos window = llama_model_n_swa(models_.draft.get());
        if (drafting && window > 0 && first > std::max(0, kept - window)) {
            reset();
            return 0;
        }
    }
    return kept;
}

void slip_pair::prefill(const int32_t * tokens, int32_t n_tokens, bool drafting) {
    const int32_t n_batch = static_cast<int32_t>(llama_n_batch(models_.ctx_target.get()));
    while (position() < n_tokens) {
        throw_if_cancelled();
        const int32_t n    = std::min(n_batch, n_tokens - position());
        const bool    last = position() + n == n_tokens;
        target_pass(tokens + position(), n, last ? 1 : 0);
        if (drafting) {
            inject(n);
        }
    }
}

// --- prompt and round --------------------------------------------------------

slip_prompt_result slip_pair::prompt(const slip_prompt_options & options) {
    if (options.n_tokens < 1 || options.n_keep < 0 || options.n_keep > options.n_tokens) {
        throw slip_failure(SLIP_ERROR_OPTION, "The prompt is empty, or n_keep is out of range.");
    }
    if (options.n_tokens > models_.n_ctx) {
        throw slip_failure(SLIP_ERROR_CONTEXT,
            "The prompt has " + std::to_string(options.n_tokens) + " tokens and the context holds " + std::to_string(models_.n_ctx) + ".",
            "Shorten it, start a new chat, or choose a larger context.");
    }
    const int32_t n_vocab = llama_vocab_n_tokens(vocab());
    if (std::any_of(options.tokens, options.tokens + options.n_tokens, [&](int32_t t) { return t < 0 || t >= n_vocab; })) {
        throw slip_failure(SLIP_ERROR_OPTION, "The prompt has a token that is not in the vocabulary.");
    }
    sampler_ = slip_sampler(options.sampling);
    const bool drafting = options.drafting != 0;
    set_drafting(drafting);
    throw_if_cancelled();

    slip_prompt_result result = {};
    result.size     = sizeof(result);
    result.n_reused = rewind_to(options.tokens, options.n_tokens, drafting);

    if (options.n_keep > position() && options.n_keep < options.n_tokens) {
        prefill(options.tokens, options.n_keep, drafting);
        keep_checkpoint();
    }
    prefill(options.tokens, options.n_tokens, drafting);
    anchor_      = sampler_.choose(target_logits(0), n_vocab, position());
    result.token = anchor_;
    return result;
}

slip_round_result slip_pair::round(int32_t n_draft, const int32_t * given) {
    if (anchor_ == LLAMA_TOKEN_NULL) {
        throw slip_failure(SLIP_ERROR_OPTION, "A round needs a prompt before it.");
    }
    if (n_draft < 0 || (n_draft > 0 && !models_.draft)) {
        throw slip_failure(SLIP_ERROR_OPTION, "There is no drafter, or the draft length is negative.");
    }
    const int32_t room = models_.n_ctx - position() - 1;
    if (room < 0) {
        throw slip_failure(SLIP_ERROR_CONTEXT, "The context of " + std::to_string(models_.n_ctx) + " tokens is full.",
            "Start a new chat, or choose a larger context.");
    }
    throw_if_cancelled();

    const int32_t n_back = static_cast<int32_t>(llama_n_rs_seq(models_.ctx_target.get())); // what can be taken back
    const int32_t n_most = std::min(n_back, room);
    n_draft = std::min(n_draft, std::max(0, n_most));
    n_syncs_ = n_graphs_rebuilt_ = 0;

    slip_round_result result = {};
    result.size = sizeof(result);
    const int64_t t_start = now_us();

    std::vector<llama_token> tokens = { anchor_ };
    if (n_draft > 0) {
        if (!given && !drafting_) {
            throw slip_failure(SLIP_ERROR_OPTION, "The prompt was read without the drafter.", "Give it with drafting on.");
        }
        const std::vector<llama_token> drafted = given ? std::vector<llama_token>(given, given + n_draft) : draft(n_draft);
        tokens.insert(tokens.end(), drafted.begin(), drafted.end());
    }
    const int64_t t_drafted = now_us();
    throw_if_cancelled();

    const int32_t n_before = position();
    target_pass(tokens.data(), static_cast<int32_t>(tokens.size()), n_draft + 1);
    llama_synchronize(models_.ctx_target.get());
    ++n_syncs_;
    const int64_t t_verified = now_us();

    // Row i holds the target's choice behind token i: keep going while it is what was drafted.
    const int32_t n_vocab = llama_vocab_n_tokens(vocab());
    int32_t accepted = 0;
    for (;; ++accepted) {
        const llama_token chosen = sampler_.choose(target_logits(accepted), n_vocab, n_before + 1 + accepted);
        result.emitted[accepted] = chosen;
        if (accepted == n_draft || chosen != tokens[accepted + 1]) {
            break;
        }
    }
    anchor_ = result.emitted[accepted];

    const int32_t n_held = n_before + 1 + accepted;
    if (n_held < position()) {
        if (!llama_memory_seq_rm(llama_get_memory(models_.ctx_target.get()), k_seq, n_held, -1)) {
            reset();
            throw slip_failure(SLIP_ERROR_INTERNAL, "The recurrent state could not be taken back.");
        }
        held_.resize(n_held);
    }
    const int64_t t_chosen = now_us();
    if (drafting_) {
        inject(1 + accepted);
    }
    const int64_t t_end = now_us();

    result.n_drafted        = n_draft;
    result.n_accepted       = accepted;
    result.n_syncs          = n_syncs_;
    result.n_graphs_rebuilt = n_graphs_rebuilt_;
    result.draft_us         = (t_drafted - t_start) + (t_end - t_chosen);
    result.verify_us        = t_verified - t_drafted;
    result.host_us          = t_chosen - t_verified;
    std::copy(tokens.begin() + 1, tokens.end(), result.drafted);
    return result;
}

// --- inspection --------------------------------------------------------------

void slip_pair::eval(const int32_t * tokens, int32_t n_tokens, int32_t n_rows, float * logits) {
    const int32_t n_most = 1 + static_cast<int32_t>(llama_n_rs_seq(models_.ctx_target.get()));
    if (n_rows < 1 || n_rows > n_most || n_tokens > models_.n_ctx) {
        throw slip_failure(SLIP_ERROR_OPTION, "A pass here has 1 to " + std::to_string(n_most) + " rows.");
    }
    reset();
    const size_t n_vocab = llama_vocab_n_tokens(vocab());
    for (int32_t done = 0; done < n_tokens; done += n_rows) {
        const int32_t n = std::min(n_rows, n_tokens - done);
        target_pass(tokens + done, n, n);
        for (int32_t i = 0; i < n; ++i) {
            std::memcpy(logits + (done + i) * n_vocab, target_logits(i), n_vocab * sizeof(float));
        }
    }
    reset();
}

void slip_pair::last_logits(int32_t row, float * logits) {
    if (row < 0 || row >= n_outputs_) {
        throw slip_failure(SLIP_ERROR_OPTION, "The last pass has " + std::to_string(n_outputs_) + " rows of logits.");
    }
    std::memcpy(logits, target_logits(row), llama_vocab_n_tokens(vocab()) * sizeof(float));
}

void slip_pair::eval_draft(const int32_t * tokens, int32_t n_tokens, llama_token anchor, float * features, float * hidden) {
    set_drafting(true);
    reset();
    const int32_t n_batch = static_cast<int32_t>(llama_n_batch(models_.ctx_target.get()));
    while (position() < n_tokens) {
        const int32_t n = std::min(n_batch, n_tokens - position());
        target_pass(tokens + position(), n, 0);
        inject(n);
        if (features) {
            features = std::copy(features_.begin(), features_.end(), features);
        }
    }
    llama_context * ctx = models_.ctx_draft.get();
    llama_set_embeddings(ctx, true);
    draft_pass(anchor, 0, models_.block);
    const size_t n_embd = llama_model_n_embd(models_.draft.get());
    for (int32_t i = 0; i < models_.block; ++i) {
        std::memcpy(hidden + i * n_embd, llama_get_embeddings_ith(ctx, i), n_embd * sizeof(float));
    }
    llama_set_embeddings(ctx, false);
    reset();
}
