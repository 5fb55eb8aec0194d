#include "load.h"

#include "alloc_watch.h"
#include "assertions.h"
#include "cores.h"
#include "devices.h"
#include "failure.h"
#include "gguf_file.h"
#include "header_check.h"
#include "host_memory.h"
#include "log.h"
#include "repairs.h"

#include "llama-ext.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

namespace {

// Layers behind the last one that guess tokens of their own (MTP): they are not loaded.
int64_t layers_beyond(const slip_gguf_file & target) {
    const char * key = "qwen35.nextn_predict_layers";
    return target.has(key) ? target.number(key) : 0;
}

int64_t layers_of(const slip_gguf_file & target) {
    return target.number("qwen35.block_count") - layers_beyond(target);
}

// A drafter that does not belong to its target must not get as far as decoding: it would
// read layers that are not there, or draft from another vocabulary.
void check_pair(const slip_gguf_file & target, const slip_gguf_file & draft) {
    const auto refuse = [&](const std::string & why) {
        throw slip_failure(SLIP_ERROR_PAIR,
            "The drafter `" + draft.path() + "` does not belong to `" + target.path() + "`: " + why + ".",
            "Choose the DFlash drafter that was made for this target.");
    };
    const auto number_text = [](int64_t n) { return std::to_string(n); };

    if (!target.same_tokens(draft)) {
        refuse("their vocabularies differ (" + number_text(target.n_tokens()) + " and " + number_text(draft.n_tokens()) + " tokens)");
    }

    const int64_t n_layers = layers_of(target);
    const int64_t n_embd   = target.number("qwen35.embedding_length");
    const int64_t n_draft  = draft.number("dflash.embedding_length");
    if (n_embd != n_draft) {
        refuse("its hidden size is " + number_text(n_draft) + ", the target's is " + number_text(n_embd));
    }

    const auto taps = draft.numbers("dflash.target_layers");
    for (const int64_t tap : taps) {
        // A tap is the input of that layer; the output of the last one never leaves the target.
        if (tap < 1 || tap >= n_layers) {
            refuse("it reads the input of layer " + number_text(tap) + ", and the target's layers are 0 to " + number_text(n_layers - 1));
        }
    }
    const int64_t fc_in = draft.dimension("fc.weight", 0);
    if (fc_in != static_cast<int64_t>(taps.size()) * n_embd) {
        refuse("it reads " + number_text(taps.size()) + " layers of " + number_text(n_embd) + ", and its `fc` takes " + number_text(fc_in) + " values");
    }

    const int64_t mask = draft.number("tokenizer.ggml.mask_token_id");
    if (mask < 0 || mask >= target.n_tokens()) {
        refuse("its mask token " + number_text(mask) + " is not in the vocabulary of " + number_text(target.n_tokens()));
    }
    const int64_t block = draft.number("dflash.block_size");
    if (block < 2 || block > SLIP_MAX_BLOCK) {
        refuse("its block size " + number_text(block) + " is not within 2 and " + number_text(SLIP_MAX_BLOCK));
    }

    // Both files say since conversion which target they belong to.
    for (const char * key : { "slipstream.pair.tokenizer_sha256", "slipstream.pair.target_config_sha256" }) {
        if (!target.text(key).empty() && !draft.text(key).empty() && target.text(key) != draft.text(key)) {
            refuse("they were not converted as a pair (`" + std::string(key) + "` differs)");
        }
    }
}

constexpr int32_t k_all_layers  = INT32_MAX;   // on a device, however many a model has
constexpr int64_t k_progress_us = 50 * 1000; // between two words about it

struct progress_part {
    slip_progress callback;
    void *        user;
    float         from, to;
    bool          stopped;
    int64_t       told_us = 0;
};

// llama.cpp asks for each tensor. Whoever is told may have to wait for a lock first, as Python does, and the load with it.
bool on_progress(float fraction, void * user) {
    auto * part = static_cast<progress_part *>(user);
    const int64_t now_us = llama_time_us();
    if (!part->callback || (fraction < 1.0f && now_us - part->told_us < k_progress_us)) {
        return !part->stopped;
    }
    part->told_us = now_us;
    if (!part->callback(part->from + fraction * (part->to - part->from), part->user)) {
        part->stopped = true;
    }
    return !part->stopped;
}

bool on_abort(void * cancelled) {
    return static_cast<std::atomic<bool> *>(cancelled)->load(std::memory_order_relaxed);
}

// The last `n_layers` of the model's live on the device, with the head; k_all_layers: all that it has.
llama_model_ptr load_model(const slip_gguf_file & file, const slip_repairs & repairs, ggml_backend_dev_t device, int32_t n_layers, progress_part part,
        bool measure) {
    const bool on_gpu = slip_device_is_gpu(device);
    ggml_backend_dev_t devices[] = { on_gpu ? device : nullptr, nullptr };

    llama_model_params params = llama_model_default_params();
    params.devices                     = devices;
    params.n_gpu_layers                = !on_gpu ? 0 : n_layers == k_all_layers ? -1 : n_layers + 1 + static_cast<int32_t>(layers_beyond(file));
    params.split_mode                  = LLAMA_SPLIT_MODE_NONE;
    params.progress_callback           = on_progress;
    params.progress_callback_user_data = &part;
    params.load_mtp                    = false;
    params.no_alloc                    = measure;
    params.load_mode                   = measure ? LLAMA_LOAD_MODE_NONE : LLAMA_LOAD_MODE_AUTO;
    params.kv_overrides                = repairs.overrides();

    slip_log_take_errors();
    const slip_alloc_watch watch;
    llama_model_ptr model(llama_model_load_from_file(file.path().c_str(), params));
    if (part.stopped) {
        throw slip_failure(SLIP_CANCELLED, "Loading was cancelled.");
    }
    if (!model) {
        const std::string why = slip_log_take_errors();
        const bool memory = watch.failed();
        throw slip_failure(memory ? SLIP_ERROR_MEMORY : SLIP_ERROR_FILE, "`" + file.path() + "` cannot be loaded: " + why,
            memory ? "Choose a smaller quantisation or context, or the CPU." : "Convert the model again.");
    }
    return model;
}

llama_context_ptr make_context(llama_model * model, llama_context_params params, ggml_backend_dev_t device) {
    slip_log_take_errors();
    slip_assertions::take_failed();
    const slip_alloc_watch watch;
    llama_context_ptr ctx(llama_init_from_model(model, params));
    const bool asserted = slip_assertions::take_failed();
    if (!ctx && watch.failed()) {
        throw slip_failure(SLIP_ERROR_MEMORY,
            "A context of " + std::to_string(params.n_ctx) + " tokens cannot be made: " + slip_log_take_errors(),
            "Choose a smaller context.");
    }
    if (!ctx && (asserted || !slip_device_is_gpu(device))) {
        throw slip_failure(SLIP_ERROR_FILE, "No context can be made of the model: " + slip_log_take_errors(), "Convert the model again.");
    }
    if (!ctx) {
        throw slip_failure(SLIP_ERROR_DEVICE, "A context of " + std::to_string(params.n_ctx) + " tokens cannot be made: " + slip_log_take_errors(),
            "Try again, or choose the CPU.");
    }
    return ctx;
}

// Of the attention's cache. Throws SLIP_ERROR_OPTION for no type, and for one whose blocks part the model's heads.
ggml_type cache_type(const char * name, const slip_gguf_file & file) {
    for (const ggml_type type : { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0 }) {
        if (std::strcmp(name, ggml_type_name(type)) == 0) {
            for (const char * key : { "qwen35.attention.key_length", "qwen35.attention.value_length" }) {
                if (file.has(key) && file.number(key) % ggml_blck_size(type) != 0) {
                    throw slip_failure(SLIP_ERROR_OPTION, "Keys and values of `" + file.path() + "` cannot be kept as `" +
                        name + "`: its heads have " + std::to_string(file.number(key)) + " numbers.", "Use f16.");
                }
            }
            return type;
        }
    }
    throw slip_failure(SLIP_ERROR_OPTION, "Keys and values cannot be kept as `" + std::string(name) + "`.",
        "Use f32, f16, bf16, q8_0 or q4_0.");
}

// A load of which nothing is made yet: devices found, files checked.
struct plan {
    explicit plan(const slip_load_options & options);

    const slip_load_options & options;
    ggml_backend_dev_t device, draft_device;
    slip_gguf_file     target_file;
    std::unique_ptr<slip_gguf_file> draft_file; // none for plain decoding only
    slip_drafter_shape shape;
    slip_repairs       repairs;

    int32_t n_layers() const { return static_cast<int32_t>(layers_of(target_file)); }
    // `measure`: models without weights, and contexts without memory, to be asked what they would take. The target's last
    // `n_layers_device` layers live on its device.
    slip_models models(int32_t n_layers_device, bool measure) const;
    void        add_contexts(slip_models & to, int32_t n_ctx, std::atomic<bool> & cancelled, bool measure) const;

    // The longest context that nobody asked for.
    int32_t n_ctx_most() const;
    // As slip_draft_vocabulary::rows() takes it. On a graphics card what few rows save was not measured yet: there it is all.
    int32_t draft_rows() const {
        return options.draft_rows == 0 && slip_device_is_gpu(draft_device) ? INT32_MAX : options.draft_rows;
    }
    // What a load takes at most, of all memories together, by the files' headers alone.
    double  bytes_most(int32_t n_ctx) const;

private:
    llama_context_params context_params(const slip_models & models, int32_t n_ctx) const;
};

constexpr int32_t k_most_tokens  = 1 << 20; // beyond any model, and far from where llama.cpp's numbers end
constexpr int32_t k_most_threads = 1024;

const slip_load_options & checked(const slip_load_options & options) {
    if (options.n_ctx < 0 || options.n_ctx > k_most_tokens || options.n_ubatch < 8 || options.n_ubatch > k_most_tokens ||
            options.n_threads < 0 || options.n_threads > k_most_threads || options.draft_rows < 0 ||
            !(options.least_share >= 0.0f && options.least_share <= 1.0f)) {
        throw slip_failure(SLIP_ERROR_OPTION, "Context, micro-batch, threads, rows of the head or share of the layers are out of range.",
            "Use a context and a micro-batch of 8 to " + std::to_string(k_most_tokens) + " tokens, and up to " +
                std::to_string(k_most_threads) + " threads, and a share of 0 to 1.");
    }
    return options;
}

slip_repairs repairs_of(const slip_gguf_file & target) {
    slip_check_header(target, "qwen35");
    return slip_repairs(target);
}

plan::plan(const slip_load_options & options) :
    options(checked(options)),
    device(slip_device_find(options.device)),
    draft_device(options.draft_device ? slip_device_find(options.draft_device) : device),
    target_file(options.target),
    repairs(repairs_of(target_file)) {
    if (options.draft) {
        draft_file = std::make_unique<slip_gguf_file>(options.draft);
        slip_check_header(*draft_file, "dflash");
        check_pair(target_file, *draft_file);
        shape = slip_drafter_shape::read(*draft_file);
    }
}

bool is_mapped(ggml_backend_buffer_type_t type) {
    return std::strcmp(ggml_backend_buft_name(type), "CPU_Mapped") == 0; // of ggml, which has no other sign of it
}

// `measure`: whether it would be.
bool is_mapped(const ggml_tensor & weight, bool measure) {
    const ggml_backend_buffer_type_t type = ggml_backend_buffer_get_type(weight.buffer);
    return measure ? llama_supports_mmap() && type == ggml_backend_cpu_buffer_type() : is_mapped(type);
}

slip_models plan::models(int32_t n_layers_device, bool measure) const {
    slip_models out;
    out.device       = device;
    out.draft_device = draft_device;
    out.shape        = shape;
    out.repairs      = repairs.told();
    if (draft_file && slip_drafter_shape::has_own_head(*draft_file)) {
        out.repairs += std::string(out.repairs.empty() ? "" : " ") +
            "The drafter has an embedding or a head of its own: the target's are used, and it may guess worse.";
    }

    const float share = draft_file ? 0.9f : 1.0f; // of the bar, for the target
    out.target = load_model(target_file, repairs, device, n_layers_device, { options.progress, options.user, 0.0f, share, false }, measure);
    out.n_layers        = llama_model_n_layer(out.target.get());
    out.n_layers_device = std::min(n_layers_device, out.n_layers);
    target_file.each_tensor([&](const ggml_tensor & tensor) {
        const ggml_tensor * weight = llama_model_get_weight(out.target.get(), ggml_get_name(&tensor));
        out.mapped += weight && is_mapped(*weight, measure) ? ggml_nbytes(weight) : 0;
    });
    if (draft_file) {
        out.draft = load_model(*draft_file, slip_repairs(*draft_file), draft_device, k_all_layers, { options.progress, options.user, share, 1.0f, false }, measure);
    }
    return out;
}

llama_context_params plan::context_params(const slip_models & models, int32_t n_ctx) const {
    const int32_t threads = options.n_threads > 0 ? options.n_threads : slip_cpu_cores();
    // The widest pass that is verified: llama.cpp wants room for one token more in a micro-batch.
    const int32_t verify  = std::max(1, std::min({ shape.rows(), options.n_ubatch - 1, n_ctx - 1 }));

    llama_context_params params = llama_context_default_params();
    params.n_ctx               = static_cast<uint32_t>(n_ctx);
    params.n_batch             = static_cast<uint32_t>(options.n_ubatch);
    params.n_ubatch            = static_cast<uint32_t>(options.n_ubatch);
    params.n_seq_max           = 1;
    params.n_rs_seq            = static_cast<uint32_t>(verify - 1);
    params.n_outputs_max       = static_cast<uint32_t>(verify);
    params.n_threads           = threads;
    params.n_threads_batch     = threads;
    // Whoever keeps weights in full wants exactness: an F16 cache would add a thousand times the error
    // of all the rest, and so would the CPU's flash attention, which rounds to F16 on the way.
    const std::string kept = options.kv_type ? options.kv_type : models.exact() ? "f32" : "f16";
    params.type_k = params.type_v = cache_type(kept.c_str(), target_file);
    if (models.exact() && params.type_v == GGML_TYPE_F32 && !models.on_gpu()) {
        params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    }
    // Else passes of 32 rows and more compute the processor's layers on the card, to other bits than the narrower ones.
    params.op_offload          = models.whole();
    params.no_perf             = false; // the count of reused graphs comes with it
    return params;
}

void plan::add_contexts(slip_models & to, int32_t n_ctx, std::atomic<bool> & cancelled, bool measure) const {
    llama_context_params params = context_params(to, n_ctx);
    params.abort_callback      = on_abort;
    params.abort_callback_data = &cancelled;
    to.drafter.reset(); // before the context that it computes in
    to.ctx_target.reset(); // a longer one that did not fit leaves its memory to this one
    to.ctx_target = make_context(to.target.get(), params, device);
    to.n_ctx      = n_ctx;

    llama_context * ctx = to.ctx_target.get();
    llama_set_async_inputs(ctx, to.on_gpu() && to.whole()); // the processor's layers read them at once
    if (to.draft) {
        llama_set_layer_inp_on_device(ctx, true);
        to.drafter = std::make_unique<slip_drafter>(shape, to.draft.get(), to.target.get(), target_file, ctx, draft_device,
            /*apart*/ draft_device != device, /*waits*/ !to.whole(), n_ctx, draft_rows(), to.exact(), measure);
    }
}

// --- what fits ---------------------------------------------------------------

constexpr int32_t  k_ctx_most  = 32768; // of a context that nobody asked for...
constexpr int32_t  k_ctx_least = 4096;  // ... which is not worth having below this
constexpr int32_t  k_ctx_step  = 1024;
constexpr uint64_t k_spare     = uint64_t(256) << 20; // for what a driver takes by itself, and whatever else runs
constexpr uint64_t k_spare_partly = uint64_t(64) << 20; // the same where every layer counts

uint64_t wanted(const slip_memory & m) {
    return m.weights + m.context + m.compute + m.drafter;
}

// What has to be free for so many bytes where nothing is to be near its end.
double with_spare(double bytes, uint64_t spare = k_spare) {
    return bytes * 1.05 + double(spare);
}

// Whether a load fits into the memory of a device, or of the host. `roomy`: with something to spare.
bool fits(const slip_memory & m, bool roomy) {
    // What is mapped from a file need not all be in memory: it is slow without, but it goes.
    const uint64_t least = roomy ? wanted(m) : wanted(m) - m.mapped;
    return m.free == 0 || (roomy ? with_spare(double(least)) : double(least)) <= double(m.free);
}

bool fits(const slip_footprint & f, bool roomy) {
    return fits(f.device, roomy) && fits(f.draft_device, roomy) && fits(f.host, roomy);
}

// What a context of n tokens takes, by what two others take: each token takes the same.
slip_footprint between(const slip_estimate & low, const slip_estimate & high, int32_t n) {
    const double share = double(n - low.n_ctx) / std::max(1, high.n_ctx - low.n_ctx);
    const auto mix = [&](uint64_t a, uint64_t b) { return static_cast<uint64_t>(double(a) + share * (double(b) - double(a))); };
    const auto memory = [&](const slip_memory & a, const slip_memory & b) {
        return slip_memory { a.weights, a.mapped, mix(a.context, b.context), mix(a.compute, b.compute), mix(a.drafter, b.drafter), a.free };
    };
    return { memory(low.footprint.device, high.footprint.device), memory(low.footprint.draft_device, high.footprint.draft_device),
        memory(low.footprint.host, high.footprint.host) };
}

std::string gigabytes(uint64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.1f GB", double(bytes) / 1e9);
    return text;
}

int32_t plan::n_ctx_most() const {
    const char * key = "qwen35.context_length";
    const int64_t trained = target_file.has(key) ? target_file.number(key) : 0;
    return trained > 0 ? static_cast<int32_t>(std::min<int64_t>(k_ctx_most, trained)) : k_ctx_most;
}

// Generous in every term, and in floating point: what a damaged file says must not wrap round.
double plan::bytes_most(int32_t n_ctx) const {
    const double cells = double(n_ctx) + k_ctx_step; // caches are padded
    double bytes = 0, kept = 0, n_embd = 0, n_heads = 0;
    for (const slip_gguf_file * file : { &target_file, static_cast<const slip_gguf_file *>(draft_file.get()) }) {
        if (!file) {
            continue;
        }
        const auto size = [&](const std::string & tensor, int i) { return file->has_tensor(tensor) ? double(file->dimension(tensor, i)) : 0.0; };
        bytes += double(file->bytes());
        n_embd = std::max(n_embd, size("output_norm.weight", 0));
        const int64_t n_layers = file->number(file->text("general.architecture") + ".block_count");
        for (int64_t il = 0; il < n_layers; ++il) {
            const std::string layer = "blk." + std::to_string(il) + ".";
            kept   += cells * (size(layer + "attn_k.weight", 1) + size(layer + "attn_v.weight", 1));
            n_heads = std::max(n_heads, size(layer + "attn_q.weight", 1) / std::max(1.0, size(layer + "attn_k_norm.weight", 0)));
            if (file->has_tensor(layer + "ssm_conv1d.weight")) {
                // The state, once more for each token that can be taken back: a trace is smaller.
                const double state = double(file->number("qwen35.ssm.inner_size")) * double(file->number("qwen35.ssm.state_size"));
                kept += (1 + shape.rows()) * (state + size(layer + "ssm_conv1d.weight", 0) * size(layer + "ssm_conv1d.weight", 1));
            }
        }
    }
    // The embedding can be the head as well, a drafter elsewhere keeps a copy of that, and one anywhere the rows that it reads.
    if (target_file.has_tensor("token_embd.weight")) {
        const auto   n_tokens = static_cast<int32_t>(target_file.n_tokens());
        const double few      = draft_file ? double(slip_draft_vocabulary::rows(n_tokens, draft_rows())) / std::max(1, n_tokens) : 0.0;
        bytes += (2.0 + 1.1 * few) * double(ggml_nbytes(&target_file.tensor("token_embd.weight")));
    }
    // Of a pass: logits, attention in full with its mask, and all else as so many vectors of the model's width.
    const double rows = std::max(options.n_ubatch, slip_drafter::k_wide) + shape.rows();
    const double row  = double(target_file.n_tokens()) + cells * (n_heads + 2) + n_embd * (64 + 4 * double(shape.taps.size()));
    return bytes + sizeof(float) * (kept + rows * row);
}

// Whether there is so much room that a load need not be measured, which opens every model twice.
bool has_room(const plan & load, int32_t n_ctx) {
    const double most = load.bytes_most(n_ctx);
    const auto holds = [&](uint64_t free) { return free == 0 || with_spare(most) <= double(free); };
    bool room = holds(slip_host_memory_free());
    for (ggml_backend_dev_t device : { load.device, load.draft_device }) {
        room = room && (!slip_device_is_gpu(device) || holds(slip_device_describe(device).memory_free));
    }
    slip_log_info("A context of " + std::to_string(n_ctx) + " tokens takes at most " + std::to_string(static_cast<uint64_t>(std::clamp(most, 0.0, 1e18))) +
        " bytes with its models: " + (room ? "there is room." : "to be measured."));
    return room;
}

// Contexts of a load that is only measured.
class measured {
public:
    measured(const plan & of, int32_t n_layers_device) : plan_(of), models_(of.models(n_layers_device, /*measure*/ true)) {}

    slip_estimate at(int32_t n_ctx) {
        plan_.add_contexts(models_, n_ctx, never_, /*measure*/ true);
        slip_estimate out = { sizeof(slip_estimate), n_ctx, models_.footprint() };
        // What is free is asked without them, as the recurrent state is there all the same; and behind the first use of a
        // device, of which its driver takes a share.
        models_.drafter.reset();
        models_.ctx_target.reset();
        const slip_footprint now = models_.footprint();
        out.footprint.device.free       = now.device.free;
        out.footprint.draft_device.free = now.draft_device.free;
        out.footprint.host.free         = now.host.free;
        return out;
    }

    // The longest context up to `most` that fits with something to spare; k_ctx_least if none does.
    slip_estimate longest(int32_t most) {
        const slip_estimate high = at(most);
        if (fits(high.footprint, true) || most <= k_ctx_least) {
            return high;
        }
        const slip_estimate low = at(k_ctx_least);
        int32_t n = most / k_ctx_step * k_ctx_step;
        while (n > low.n_ctx && !fits(between(low, high, n), true)) {
            n -= k_ctx_step;
        }
        return n > low.n_ctx ? at(n) : low;
    }

private:
    const plan &      plan_;
    std::atomic<bool> never_ { false };
    slip_models       models_; // after the flag that its contexts read
};

// What a load takes, and how many of the target's layers its device then holds.
struct placed {
    slip_estimate estimate;
    int32_t       n_layers_device;
};

// As many layers on the device as fit there with something to spare, beside the drafter; none if not one does. `all` is
// what the load takes with all of them.
placed partly(const plan & of, const slip_estimate & all) {
    const slip_estimate none = measured(of, 0).at(all.n_ctx);
    const double layers = double(wanted(all.footprint.device)) - double(wanted(none.footprint.device));
    const double room   = (double(none.footprint.device.free) - double(k_spare_partly)) / 1.05 - double(wanted(none.footprint.device));
    // Layers are not all of one size, and what passes need is the largest layer's: the share is where to begin.
    const double share = layers > 0 ? std::clamp(room / layers, 0.0, 1.0) : 0.0;
    for (int32_t n = std::min(of.n_layers() - 1, static_cast<int32_t>(share * of.n_layers()) + 1); n > 0; --n) {
        const slip_estimate some = measured(of, n).at(all.n_ctx);
        const slip_memory & on   = some.footprint.device;
        slip_log_info("With " + std::to_string(n) + " of " + std::to_string(of.n_layers()) + " layers on the device it takes " +
            std::to_string(wanted(on)) + " of " + std::to_string(on.free) + " bytes there.");
        if (with_spare(double(wanted(on)), k_spare_partly) <= double(on.free) && fits(some.footprint, false)) {
            return { some, n };
        }
        if (!fits(some.footprint.host, false)) {
            break; // with fewer layers there it is more
        }
    }
    return { none, 0 };
}

// Throws SLIP_ERROR_MEMORY where the load does not fit, saying of what it is too much.
placed estimated(const plan & of) {
    measured load(of, k_all_layers);
    const slip_estimate out = of.options.n_ctx > 0 ? load.at(of.options.n_ctx) : load.longest(of.n_ctx_most());
    const slip_footprint & f = out.footprint;
    if (fits(f, false)) {
        return { out, k_all_layers };
    }
    const bool on_device = !fits(f.device, false), on_draft = !on_device && !fits(f.draft_device, false);
    if (on_device) {
        if (const placed some = partly(of, out); some.n_layers_device > 0) {
            if (some.n_layers_device < of.options.least_share * of.n_layers()) {
                throw slip_failure(SLIP_ERROR_MEMORY,
                    "Only " + std::to_string(some.n_layers_device) + " of " + std::to_string(of.n_layers()) + " layers fit on " +
                        slip_device_describe(of.device).description + ": the CPU alone is expected to be as fast.",
                    "Choose the CPU, a smaller quantisation or a shorter context.");
            }
            return some;
        }
    }
    const slip_memory & m = on_device ? f.device : on_draft ? f.draft_device : f.host;
    std::string remedy = "Choose a smaller quantisation";
    if (const slip_estimate other = load.longest(std::min(out.n_ctx, of.n_ctx_most())); fits(other.footprint, true) && other.n_ctx < out.n_ctx) {
        remedy = "Choose a context of " + std::to_string(other.n_ctx) + ", which fits, a smaller quantisation";
    }
    throw slip_failure(SLIP_ERROR_MEMORY,
        "With a context of " + std::to_string(out.n_ctx) + " tokens it takes " + gigabytes(wanted(m)) + ", and " +
            (on_device ? slip_device_describe(of.device).description : on_draft ? slip_device_describe(of.draft_device).description : "this machine") +
            " has " + gigabytes(m.free) + " free.",
        remedy + (on_device || on_draft ? ", or the CPU." : ", or close other programs."));
}

} // namespace

slip_models slip_load_models(const slip_load_options & options, std::atomic<bool> & cancelled) {
    const plan load(options);
    const int32_t most  = options.n_ctx > 0 ? options.n_ctx : load.n_ctx_most();
    int32_t n_ctx = most, n_layers_device = k_all_layers;
    if (!has_room(load, most)) {
        const placed found = estimated(load);
        n_ctx           = found.estimate.n_ctx;
        n_layers_device = found.n_layers_device;
    }
    slip_models out = load.models(n_layers_device, /*measure*/ false);
    for (int32_t n = n_ctx;; n = std::max(k_ctx_least, n / 2)) {
        try {
            load.add_contexts(out, n, cancelled, /*measure*/ false);
            return out;
        } catch (const slip_failure & failure) {
            // What is free is not all that can be had in one piece, and others take of it meanwhile.
            if (failure.status != SLIP_ERROR_MEMORY || options.n_ctx > 0 || n <= k_ctx_least) {
                throw;
            }
            slip_alloc_watch::forgive();
        }
    }
}

slip_estimate slip_estimate_models(const slip_load_options & options) {
    return estimated(plan(options)).estimate;
}

bool slip_models::exact() const {
    return llama_model_ftype(target.get()) == LLAMA_FTYPE_ALL_F32;
}

// What a graphics card takes for the attention of a verify beside the buffers that are planned, as a chat grows: of each
// 256 keys a sum of values and two numbers, for every head and row (patches 0034 and 0036).
static uint64_t attention_parts(const llama_model * model, const llama_context * ctx) {
    constexpr uint64_t k_part = 256;
    char n_value[16] = "";
    if (llama_model_meta_val_str(model, "qwen35.attention.value_length", n_value, sizeof(n_value)) < 1) {
        return 0;
    }
    const uint64_t n_parts = (llama_n_ctx(ctx) + k_part - 1) / k_part, n_rows = llama_n_rs_seq(ctx) + 1;
    return n_parts * n_rows * llama_model_n_head(model) * (std::strtoull(n_value, nullptr, 10) + 2) * sizeof(float);
}

slip_footprint slip_models::footprint() const {
    slip_footprint out = {};
    if (ctx_target) {
        for (const auto & [type, bytes] : llama_get_memory_breakdown(ctx_target.get())) {
            slip_memory & m = on_gpu() && !ggml_backend_buft_is_host(type) ? out.device : out.host;
            m.weights += is_mapped(type) ? mapped : bytes.model; // of the file, a buffer has all from the first to the last
            m.context += bytes.context;
            m.compute += bytes.compute;
        }
        out.host.mapped = mapped;
        // While it drafts, each pass leaves the layers' inputs that the drafter reads; and the host has room for logits.
        slip_memory & on = on_gpu() ? out.device : out.host;
        on.compute += uint64_t(shape.taps.size()) * llama_model_n_embd(target.get()) * llama_n_ubatch(ctx_target.get()) * sizeof(float);
        if (on_gpu()) {
            out.device.compute += attention_parts(target.get(), ctx_target.get());
        }
        const int32_t n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(target.get()));
        out.host.compute += uint64_t(n_vocab) * shape.rows() * sizeof(float);
    }
    const bool third = drafts_on_gpu() && draft_device != device;
    if (drafter) {
        (third ? out.draft_device : drafts_on_gpu() ? out.device : out.host).drafter += drafter->memory().device;
        out.host.drafter += drafter->memory().host;
    }
    out.device.free       = on_gpu() ? slip_device_describe(device).memory_free : 0;
    out.draft_device.free = third ? slip_device_describe(draft_device).memory_free : 0;
    out.host.free         = slip_host_memory_free();
    return out;
}

bool slip_models::on_gpu() const {
    return slip_device_is_gpu(device);
}

bool slip_models::drafts_on_gpu() const {
    return slip_device_is_gpu(draft_device);
}
