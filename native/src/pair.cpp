#include "pair.h"

#include "alloc_watch.h"
#include "comparable.h"
#include "devices.h"
#include "failure.h"
#include "log.h"
#include "text.h"

#include "llama-ext.h"
#include "llama.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace {

constexpr llama_seq_id k_seq = 0;
constexpr int32_t      k_probe_tokens = 64; // context in which costs are measured
constexpr float        k_most_steps = 5; // of a round of the whole block on a card
constexpr double       k_warm_up_ms = 400; // for what costs are measured by, as far as one of each allows

constexpr int32_t k_no_memory = -2; // of llama_process: no room for the graph

// llama_process, which throws where the buffers for a graph of another shape cannot be had, or what an operation needs.
int32_t processed(llama_context * ctx, llama_batch_ext * batch) {
    const slip_alloc_watch watch;
    try {
        return llama_process(ctx, LLAMA_PROCESS_TYPE_DECODE, batch);
    } catch (const std::exception &) {
        if (watch.failed()) {
            return k_no_memory;
        }
        throw;
    }
}

int64_t now_us() {
    return llama_time_us();
}

} // namespace

void slip_pair::batch_free::operator()(llama_batch_ext * batch) const {
    llama_batch_ext_free(batch);
}

slip_pair::slip_pair(const slip_load_options & options) :
    models_(slip_load_models(options, cancelled_)),
    batch_(llama_batch_ext_init(models_.ctx_target.get())),
    governor_(std::max(1, models_.shape.block)) {
    if (models_.drafter && models_.whole() && models_.draft_device == models_.device && slip_device_captures_graphs(models_.device)) {
        warm_up();
    }
}

// A card evaluates each width once and captures it the second time, for twice what a round takes: now rather than in the
// first answer, whose governor knows what rounds take.
void slip_pair::warm_up() {
    try {
        const slip_costs costs = measure_costs(k_warm_up_ms);
        const float whole = costs.verify[models_.shape.block];
        // A pass that met kernels on their way from the disk would have no width pay for ever: rounds tell then.
        if (whole > 0 && costs.draft + whole < k_most_steps * costs.plain) {
            governor_.set_costs(costs);
        }
    } catch (const std::exception &) {
        // whatever it is, the first prompt meets it and says so
    }
}

const llama_vocab * slip_pair::vocab() const {
    return llama_model_get_vocab(models_.target.get());
}

// What the model's file says under `key`, as text; empty where it says nothing.
static std::string meta(const llama_model * model, const char * key) {
    const int32_t n = llama_model_meta_val_str(model, key, nullptr, 0);
    std::string out(std::max(0, n) + 1, '\0');
    llama_model_meta_val_str(model, key, out.data(), out.size());
    out.pop_back();
    return out;
}

slip_info slip_pair::info() const {
    const llama_model * target = models_.target.get();
    slip_info out = {};
    out.size = sizeof(out);
    slip_copy_text(out.name, meta(target, "general.name"));
    slip_copy_text(out.quantisation, llama_ftype_name(llama_model_ftype(target)));
    out.target_bytes    = llama_model_size(target);
    out.draft_bytes     = models_.draft ? llama_model_size(models_.draft.get()) : 0;
    out.n_ctx           = models_.n_ctx;
    out.n_ubatch        = static_cast<int32_t>(llama_n_ubatch(models_.ctx_target.get()));
    out.n_vocab         = llama_vocab_n_tokens(vocab());
    out.n_embd          = llama_model_n_embd(target);
    out.n_embd_draft    = models_.draft ? llama_model_n_embd(models_.draft.get()) : 0;
    out.n_layers        = llama_model_n_layer(target);
    out.device          = slip_device_describe(models_.device);
    out.draft_device    = slip_device_describe(models_.draft_device);
    out.n_layers_device = models_.n_layers_device;
    out.n_taps          = static_cast<int32_t>(models_.shape.taps.size());
    out.block           = models_.shape.block;
    out.draft_rows      = models_.drafter ? models_.drafter->head_rows() : 0;
    const bool has_bos  = !meta(target, "tokenizer.ggml.bos_token_id").empty(); // llama.cpp has a default where the file names none
    out.bos             = has_bos ? llama_vocab_bos(vocab()) : -1;
    out.eos             = llama_vocab_eos(vocab());
    out.footprint       = models_.footprint();
    slip_copy_text(out.repairs, models_.repairs);
    return out;
}

// --- passes ------------------------------------------------------------------

// Runs `n` tokens behind the held ones; the last `n_outputs` of them give a choice. Does not wait.
void slip_pair::target_pass(const llama_token * tokens, int32_t n, int32_t n_outputs) {
    llama_batch_ext * batch = batch_.get();
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

    llama_context * ctx = models_.ctx_target.get();
    held_.insert(held_.end(), tokens, tokens + n);
    if (n_outputs > 0) {
        sampler_.install(ctx, held_.data(), position() - n_outputs + 1, n_outputs);
    }
    const int32_t reused = llama_perf_context(ctx).n_reused;
    slip_log_take_errors();
    const int32_t status = processed(ctx, batch);
    counts_.rebuilt += llama_perf_context(ctx).n_reused == reused;
    ++counts_.launched;
    if (status != 0) {
        if (status == 2) { // aborted, whatever slip_cancel says by now
            reset(); // a pass that stopped half-way leaves the recurrent state anywhere
            throw slip_failure(SLIP_CANCELLED, "Cancelled.");
        }
        const std::string why = slip_log_take_errors();
        if (status == k_no_memory) {
            throw slip_failure(SLIP_ERROR_MEMORY, "There is not enough memory for a pass: " + why,
                "Choose a smaller context, or the CPU.");
        }
        throw slip_failure(SLIP_ERROR_DEVICE, "A pass failed with status " + std::to_string(status) + ": " + why,
            "Try again, or choose the CPU.");
    }
    n_last_    = n;
    n_outputs_ = n_outputs;
}

void slip_pair::wait() {
    llama_synchronize(models_.ctx_target.get());
    ++counts_.syncs;
}

// The target's choice in output row `row` of its last pass, for `position`, behind so many held tokens. After wait().
// LLAMA_TOKEN_NULL where the row holds what is no number: a graph finds the largest of the others all the same, so the
// host looks where the row is at hand, and elsewhere the graph does.
llama_token slip_pair::target_choice(int32_t row, int32_t position) {
    llama_context * ctx = models_.ctx_target.get();
    const int32_t token = n_last_ - n_outputs_ + row;
    if (sampler_.on_device()) {
        const float * logits = host_logits(row);
        return logits && !slip_comparable(logits, llama_vocab_n_tokens(vocab())) ? LLAMA_TOKEN_NULL : llama_get_out_token_ith(ctx, token);
    }
    return sampler_.choose(llama_get_logits_ith(ctx, token), held_.data(), position, position);
}

// Logits of an output row of the last pass, nullptr where they are on a device. After wait().
const float * slip_pair::host_logits(int32_t row) const {
    const ggml_tensor * logits = llama_get_logits_tensor(models_.ctx_target.get());
    const ggml_tensor * owner  = logits->view_src ? logits->view_src : logits;
    const bool here = owner->buffer && ggml_backend_buffer_is_host(owner->buffer);
    return here ? static_cast<const float *>(logits->data) + int64_t(row) * llama_vocab_n_tokens(vocab()) : nullptr;
}

// Logits of output rows of the last pass, wherever they are.
void slip_pair::read_logits(int32_t first_row, int32_t n_rows, float * out) {
    wait();
    const size_t row = llama_vocab_n_tokens(vocab()) * sizeof(float);
    ggml_backend_tensor_get(llama_get_logits_tensor(models_.ctx_target.get()), out, first_row * row, n_rows * row);
}

// --- state -------------------------------------------------------------------

void slip_pair::reset() {
    llama_set_inp_tokens(models_.ctx_target.get(), nullptr, nullptr); // of a draft whose verify did not begin
    llama_memory_clear(llama_get_memory(models_.ctx_target.get()), true);
    if (models_.drafter) {
        models_.drafter->reset();
    }
    held_.clear();
    checkpoint_.clear();
    anchor_        = LLAMA_TOKEN_NULL;
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
    // Where a device captures graphs they stay: each change of what leaves has all of them made anew.
    const bool leave = drafting || slip_device_captures_graphs(models_.device);
    if (leave != taps_leave_) {
        for (const int32_t tap : models_.shape.taps) {
            llama_set_embeddings_layer_inp(models_.ctx_target.get(), tap, leave);
        }
    }
    taps_leave_ = leave;
    drafting_   = drafting;
}

void slip_pair::keep_checkpoint() {
    llama_context * ctx = models_.ctx_target.get();
    checkpoint_.resize(llama_state_seq_get_size_ext(ctx, k_seq, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY));
    const size_t n = llama_state_seq_get_data_ext(
        ctx, checkpoint_.data(), checkpoint_.size(), k_seq, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY);
    checkpoint_at_ = n == checkpoint_.size() ? position() : 0;
}

bool slip_pair::restore_checkpoint() {
    llama_context * ctx = models_.ctx_target.get();
    if (checkpoint_at_ == 0 ||
            llama_state_seq_set_data_ext(ctx, checkpoint_.data(), checkpoint_.size(), k_seq, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY) == 0 ||
            !llama_memory_seq_rm(llama_get_memory(ctx), k_seq, checkpoint_at_, -1)) {
        return false;
    }
    held_.resize(checkpoint_at_);
    return true;
}

// Takes the pair back to the longest state it can restore that is a prefix of `tokens` and
// leaves at least one of them to run. Returns that length.
int32_t slip_pair::rewind_to(const int32_t * tokens, int32_t n_tokens, bool drafting) {
    const int32_t n_max = std::min(position(), n_tokens - 1);
    int32_t common = static_cast<int32_t>(std::mismatch(held_.begin(), held_.begin() + n_max, tokens).first - held_.begin());
    // The drafter must know all that the target knows, or it would draft from a gap.
    const int32_t usable = drafting ? std::min(common, models_.drafter->position()) : common;

    const bool as_it_is = usable == position() && usable > 0;
    if (!as_it_is && !(checkpoint_at_ <= usable && restore_checkpoint())) {
        reset();
        return 0;
    }
    const int32_t kept = position();
    // The drafter's window may have moved past what the shorter context needs again.
    if (models_.drafter && !models_.drafter->rewind(kept)) {
        if (drafting) {
            reset();
            return 0;
        }
        models_.drafter->reset(); // it would be taken to know what this prompt goes on with
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
            models_.drafter->queue(n);
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
    check_known(options.tokens, options.n_tokens);
    const slip_sampler sampler(options.sampling, llama_vocab_n_tokens(vocab()), /*watches*/ models_.on_gpu());
    const bool drafting = options.drafting != 0;
    set_drafting(drafting);
    // Nothing is refused from here on: the answer before this one is over, also if this one is cancelled.
    anchor_  = LLAMA_TOKEN_NULL;
    sampler_ = sampler;
    // The context knows it by its place: whatever graph it builds next has to find what it needs there.
    sampler_.install(models_.ctx_target.get(), options.tokens, options.n_tokens, 1);
    governor_.begin_answer();
    throw_if_cancelled();

    slip_prompt_result result = {};
    result.size     = sizeof(result);
    result.n_reused = rewind_to(options.tokens, options.n_tokens, drafting);

    if (options.n_keep > position() && options.n_keep < options.n_tokens) {
        prefill(options.tokens, options.n_keep, drafting);
        keep_checkpoint();
    }
    prefill(options.tokens, options.n_tokens, drafting);
    wait();
    anchor_      = target_choice(0, position());
    result.token = anchor_;
    if (drafting) {
        models_.drafter->see(options.tokens, options.n_tokens);
        models_.drafter->see(&anchor_, 1);
    }
    if (models_.drafter) {
        models_.drafter->take_counts(); // what a round costs begins with the round
    }
    return result;
}

slip_round_result slip_pair::round(int32_t n_draft, const slip_hint & hint) {
    return verified(n_draft, nullptr, hint);
}

slip_round_result slip_pair::given_round(int32_t n_draft, const int32_t * given) {
    const slip_round_result result = verified(n_draft, given, {});
    governor_.count(1 + result.n_drafted, 1 + result.n_accepted);
    return result;
}

slip_round_result slip_pair::verified(int32_t n_draft, const int32_t * given, const slip_hint & hint) {
    if (anchor_ == LLAMA_TOKEN_NULL) {
        throw slip_failure(SLIP_ERROR_OPTION, "A round needs a prompt before it.");
    }
    if (n_draft < 0 || (n_draft > 0 && !given && !models_.draft)) {
        throw slip_failure(SLIP_ERROR_OPTION, "There is no drafter, or the draft length is negative.");
    }
    if (position() >= models_.n_ctx) {
        throw slip_failure(SLIP_ERROR_CONTEXT, "The context of " + std::to_string(models_.n_ctx) + " tokens is full.",
            "Start a new chat, or choose a larger context.");
    }
    throw_if_cancelled();
    n_draft = widest(n_draft);
    counts_ = {};
    const int64_t built_before = slip_device_graphs_built(models_.device);

    slip_round_result result = {};
    result.size = sizeof(result);
    const int64_t t_start = now_us();

    // The host does not wait for the draft: the verify takes its tokens where they are made.
    std::vector<llama_token> tokens(1 + n_draft, anchor_);
    const bool drafts = n_draft > 0 && !given;
    int32_t    n_own  = drafts ? n_draft : 0; // drafted tokens that are the drafter's
    if (drafts) {
        if (!drafting_) {
            throw slip_failure(SLIP_ERROR_OPTION, "The prompt was read without the drafter.", "Give it with drafting on.");
        }
        slip_drafter & drafter = *models_.drafter;
        const ggml_tensor * drafted = drafter.draft(anchor_, n_draft);
        throw_if_cancelled();
        n_own = agreed(hint, n_draft);
        if (n_own == n_draft) {
            llama_set_inp_tokens(models_.ctx_target.get(), drafter.backend(), drafted);
        } else {
            given = hint.tokens;
        }
    }
    if (given) {
        std::copy(given, given + n_draft, tokens.begin() + 1);
    }
    if (drafting_) {
        models_.drafter->make_room(1 + n_draft); // once the round is verified, nothing may stop what it gave
    }
    const int64_t t_drafted = now_us();

    const int32_t n_before = position();
    target_pass(tokens.data(), 1 + n_draft, 1 + n_draft);
    const bool brought = drafting_ && models_.drafter->bring(1 + n_draft);
    wait();
    const int64_t t_verified = now_us();
    for (int32_t i = 0; !given && i < n_draft; ++i) {
        tokens[1 + i] = held_[n_before + 1 + i] = models_.drafter->drafted(i);
    }

    // Row i holds the target's choice behind token i: keep going while it is what was drafted.
    int32_t accepted = 0;
    for (;; ++accepted) {
        const llama_token chosen = target_choice(accepted, n_before + 1 + accepted);
        result.emitted[accepted] = chosen;
        if (accepted == n_draft || chosen != tokens[accepted + 1]) {
            break;
        }
    }
    anchor_ = result.emitted[accepted];

    const int32_t n_held = n_before + 1 + accepted;
    if (n_held < position() && !llama_memory_seq_rm(llama_get_memory(models_.ctx_target.get()), k_seq, n_held, -1)) {
        throw slip_failure(SLIP_ERROR_INTERNAL, "The recurrent state could not be taken back.");
    }
    held_.resize(n_held);
    if (drafting_) {
        models_.drafter->record(result.emitted, accepted, n_own);
        if (brought) {
            models_.drafter->keep(1 + accepted);
        } else {
            models_.drafter->queue(1 + accepted);
        }
    }
    const int64_t t_end = now_us();

    const slip_drafter::counts drafter = models_.drafter ? models_.drafter->take_counts() : slip_drafter::counts();
    result.n_drafted        = n_draft;
    result.n_accepted       = accepted;
    result.n_own            = n_own;
    result.head_rows        = drafts ? models_.drafter->rows_read() : 0;
    result.n_syncs          = counts_.syncs + drafter.waited;
    result.n_graphs_run     = counts_.launched + drafter.launched;
    result.n_graphs_rebuilt = static_cast<int32_t>(std::min<int64_t>(result.n_graphs_run,
        std::max<int64_t>(counts_.rebuilt + drafter.rebuilt, slip_device_graphs_built(models_.device) - built_before)));
    result.bytes_to_host    = sizeof(llama_token) * (drafts ? n_draft : 0) +
        (1 + n_draft) * (sampler_.on_device() ? sizeof(llama_token) : sizeof(float) * llama_vocab_n_tokens(vocab()));
    // A device works on while the host goes ahead: there the two phases are one.
    result.draft_us         = models_.drafts_on_gpu() && drafts ? -1 : t_drafted - t_start;
    result.verify_us        = t_verified - (result.draft_us < 0 ? t_start : t_drafted);
    result.host_us          = t_end - t_verified;
    std::copy(tokens.begin() + 1, tokens.end(), result.drafted);
    return result;
}

// How many tokens of the draft that is on its way are the drafter's: all, or those that it begins with as the hint does,
// where the hint is what is verified.
int32_t slip_pair::agreed(const slip_hint & hint, int32_t n_draft) {
    if (hint.n < n_draft || n_draft <= SLIP_AGREED) {
        return n_draft;
    }
    ggml_backend_synchronize(models_.drafter->backend());
    ++counts_.syncs;
    int32_t n = 0;
    while (n < n_draft && models_.drafter->drafted(n) == hint.tokens[n]) {
        ++n;
    }
    return n < SLIP_AGREED ? n_draft : n;
}

// What of a draft of `n_draft` tokens can be taken back and fits behind the anchor.
int32_t slip_pair::widest(int32_t n_draft) const {
    const int32_t n_back = static_cast<int32_t>(llama_n_rs_seq(models_.ctx_target.get()));
    return std::max(0, std::min({ n_draft, n_back, models_.n_ctx - position() - 1 }));
}

// --- governor ----------------------------------------------------------------

slip_round_result slip_pair::governed_round(int32_t n_draft, const slip_hint & hint) {
    if (!drafting_ || n_draft < 1) {
        return round(n_draft, hint);
    }
    const int32_t width = governor_.choose(1 + widest(n_draft));
    const int64_t start = now_us();
    slip_round_result result = round(width - 1, hint);
    // On a processor a graph that is built anew takes no time that counts.
    const bool built = models_.on_gpu() && result.n_graphs_rebuilt > 0;
    governor_.record(1 + result.n_drafted, result.n_accepted, result.n_own, (now_us() - start) / 1e3, built);
    result.reason = governor_.reason();
    return result;
}

void slip_pair::set_costs(const slip_costs & costs) {
    const auto usable = [](float ms) { return std::isfinite(ms) && ms >= 0; };
    if (costs.plain == 0 || !usable(costs.plain) || !usable(costs.draft) || !usable(costs.draft_one) ||
            !std::all_of(std::begin(costs.verify), std::end(costs.verify), usable)) {
        throw slip_failure(SLIP_ERROR_OPTION, "The costs are not positive.");
    }
    governor_.set_costs(costs);
}

void slip_pair::set_learned(const slip_learned & learned) {
    if (!governor_.set_learned(learned)) {
        throw slip_failure(SLIP_ERROR_OPTION, "What was learned of acceptance is damaged.", "Begin without it.");
    }
}

slip_costs slip_pair::measure_costs(double limit_ms) {
    if (!models_.draft) {
        throw slip_failure(SLIP_ERROR_OPTION, "There is no drafter.");
    }
    if (models_.n_ctx < 2) {
        throw slip_failure(SLIP_ERROR_CONTEXT, "A context of one token has no room for a step.", "Choose a larger context.");
    }
    try {
        return timed_rounds(limit_ms);
    } catch (...) {
        reset(); // of a prompt that nobody gave
        throw;
    }
}

slip_costs slip_pair::timed_rounds(double limit_ms) {
    constexpr double k_long_ms = 150, k_short_ms = 20;
    const int64_t start = now_us();
    const auto passed = [](int64_t since) { return (now_us() - since) / 1e3; };

    // A short context leaves what it can behind the prompt, up to a whole block.
    const std::vector<llama_token> tokens(k_probe_tokens, 0);
    slip_prompt_options options = {};
    options.tokens         = tokens.data();
    options.n_tokens       = std::clamp(models_.n_ctx - models_.shape.block, 1, k_probe_tokens);
    options.drafting       = 1;
    options.sampling.top_p          = 1;
    options.sampling.repeat_penalty = 1;
    const auto check_choice = [&] {
        if (anchor_ == LLAMA_TOKEN_NULL) {
            throw slip_failure(SLIP_ERROR_NUMBERS, "The model computes numbers that are not finite, so no token can be chosen.",
                "Check its files or get it again; if it comes again, use another device.");
        }
    };
    const auto begin = [&] {
        reset();
        prompt(options);
        check_choice();
    };

    // The best of some repetitions: whatever else the machine does only adds. The first of them build and warm up
    // graphs, which is nothing to a long pass. They follow each other until one of `width` tokens would not fit whole.
    const bool fetches = slip_device_captures_graphs(models_.device); // kernels, in the first
    const auto timed = [&](int32_t width, auto && pass) {
        double best = std::numeric_limits<double>::infinity();
        for (int32_t i = 0, warm = 1; i < warm + 5; ++i) {
            if (position() + width > models_.n_ctx) {
                begin();
            }
            const int64_t before = now_us();
            pass();
            const double ms = passed(before);
            warm = ms < k_short_ms ? 3 : ms < k_long_ms || fetches ? 1 : 0;
            if (i >= warm) {
                best = std::min(best, ms);
            }
            if (std::isfinite(best) && passed(start) + ms > limit_ms) {
                break;
            }
        }
        return static_cast<float>(best);
    };
    const auto verify = [&](int32_t width) {
        if (verified(width - 1, tokens.data(), {}).n_drafted != width - 1) {
            throw slip_failure(SLIP_ERROR_INTERNAL, "A pass of " + std::to_string(width) + " tokens was cut short.");
        }
        check_choice();
    };
    const auto draft = [&](int32_t n) {
        models_.drafter->draft(anchor_, n);
        ggml_backend_synchronize(models_.drafter->backend());
    };

    begin();
    slip_costs out = {};
    out.size  = sizeof(out);
    const int32_t widest_verify = 1 + widest(models_.shape.block - 1);
    out.plain     = timed(1, [&] { verify(1); });
    out.draft     = timed(0, [&] { draft(models_.shape.block - 1); });
    out.draft_one = timed(0, [&] { draft(1); });
    for (const int32_t w : { widest_verify, 8, 4, 2, 12, 6, 3 }) {
        const double guess = out.verify[widest_verify];
        const bool in_time = w == widest_verify || passed(start) + 2 * guess < limit_ms;
        if (w > 1 && w <= widest_verify && out.verify[w] == 0 && in_time) {
            out.verify[w] = timed(w, [&] { verify(w); });
        }
    }
    reset();
    return out;
}

// --- inspection --------------------------------------------------------------

void slip_pair::eval(const int32_t * tokens, int32_t n_tokens, int32_t n_rows, float * logits) {
    const int32_t n_most = 1 + static_cast<int32_t>(llama_n_rs_seq(models_.ctx_target.get()));
    if (n_rows < 1 || n_rows > n_most) {
        throw slip_failure(SLIP_ERROR_OPTION, "A pass here has 1 to " + std::to_string(n_most) + " rows.");
    }
    check_fits(n_tokens);
    check_known(tokens, n_tokens);
    reset();
    const size_t n_vocab = llama_vocab_n_tokens(vocab());
    for (int32_t done = 0; done < n_tokens; done += n_rows) {
        const int32_t n = std::min(n_rows, n_tokens - done);
        target_pass(tokens + done, n, n);
        read_logits(0, n, logits + done * n_vocab);
    }
    reset();
}

void slip_pair::last_logits(int32_t row, float * logits) {
    if (row < 0 || row >= n_outputs_) {
        throw slip_failure(SLIP_ERROR_OPTION, "The last pass has " + std::to_string(n_outputs_) + " rows of logits.");
    }
    read_logits(row, 1, logits);
}

void slip_pair::check_fits(int32_t n_tokens) const {
    if (n_tokens < 1 || n_tokens > models_.n_ctx) {
        throw slip_failure(SLIP_ERROR_OPTION, "The context holds 1 to " + std::to_string(models_.n_ctx) + " tokens.");
    }
}

void slip_pair::check_known(const int32_t * tokens, int32_t n_tokens) const {
    const int32_t n_vocab = llama_vocab_n_tokens(vocab());
    const auto unknown = std::find_if(tokens, tokens + n_tokens, [&](int32_t t) { return t < 0 || t >= n_vocab; });
    if (unknown != tokens + n_tokens) {
        throw slip_failure(SLIP_ERROR_OPTION, "Token " + std::to_string(*unknown) + " is not in the vocabulary.");
    }
}

void slip_pair::eval_draft(const int32_t * tokens, int32_t n_tokens, llama_token anchor, float * features, float * hidden) {
    check_fits(n_tokens);
    check_known(tokens, n_tokens);
    check_known(&anchor, 1);
    set_drafting(true);
    reset();
    llama_context * ctx = models_.ctx_target.get();
    const int32_t n_batch = static_cast<int32_t>(llama_n_batch(ctx));
    const size_t  n_embd  = llama_model_n_embd(models_.target.get());
    const size_t  n_taps  = models_.shape.taps.size();
    std::vector<float> tap;
    while (position() < n_tokens) {
        const int32_t n = std::min(n_batch, n_tokens - position());
        target_pass(tokens + position(), n, 0);
        models_.drafter->queue(n);
        if (!features) {
            continue;
        }
        wait();
        tap.resize(n * n_embd);
        for (size_t k = 0; k < n_taps; ++k) {
            ggml_backend_tensor_get(llama_get_layer_inp_tensor(ctx, models_.shape.taps[k]), tap.data(), 0, tap.size() * sizeof(float));
            for (int32_t i = 0; i < n; ++i) {
                std::memcpy(features + (i * n_taps + k) * n_embd, tap.data() + i * n_embd, n_embd * sizeof(float));
            }
        }
        features += n * n_taps * n_embd;
    }
    models_.drafter->hidden(anchor, hidden);
    reset();
}
