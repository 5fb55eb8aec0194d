#include "load.h"

#include "cores.h"
#include "devices.h"
#include "failure.h"
#include "gguf_file.h"
#include "log.h"
#include "repairs.h"

#include "llama-ext.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace {

constexpr int64_t k_max_layers = 512; // of llama.cpp

// What llama.cpp takes for granted: it would end the process instead of the load.
void check_sizes(const slip_gguf_file & file, const std::string & architecture) {
    const std::string key = architecture + ".block_count";
    const int64_t n_layers = file.number(key);
    if (n_layers < 1 || n_layers > k_max_layers || file.n_tokens() < 1) {
        throw slip_failure(SLIP_ERROR_FILE,
            "`" + file.path() + "` holds " + std::to_string(file.n_tokens()) + " tokens and `" + key + "` = " + std::to_string(n_layers) +
                "; there have to be some tokens, and 1 to " + std::to_string(k_max_layers) + " layers.",
            "Convert the model again.");
    }
    if (architecture == "qwen35") {
        const int64_t inner = file.number("qwen35.ssm.inner_size");
        const int64_t heads = file.number("qwen35.ssm.time_step_rank"), width = file.number("qwen35.ssm.state_size");
        if (inner != heads * width) {
            throw slip_failure(SLIP_ERROR_FILE,
                "`" + file.path() + "` has `qwen35.ssm.inner_size` = " + std::to_string(inner) + ", which is not " + std::to_string(heads) +
                    " heads of " + std::to_string(width) + ".",
                "Convert the model again.");
        }
    }
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

    const int64_t n_layers = target.number("qwen35.block_count");
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

struct progress_part {
    slip_progress callback;
    void *        user;
    float         from, to;
    bool          stopped;
};

bool on_progress(float fraction, void * user) {
    auto * part = static_cast<progress_part *>(user);
    if (part->callback && !part->callback(part->from + fraction * (part->to - part->from), part->user)) {
        part->stopped = true;
    }
    return !part->stopped;
}

bool on_abort(void * cancelled) {
    return static_cast<std::atomic<bool> *>(cancelled)->load(std::memory_order_relaxed);
}

llama_model_ptr load_model(const slip_gguf_file & file, const slip_repairs & repairs, ggml_backend_dev_t device, progress_part part) {
    const bool on_gpu = slip_device_is_gpu(device);
    ggml_backend_dev_t devices[] = { on_gpu ? device : nullptr, nullptr };

    llama_model_params params = llama_model_default_params();
    params.devices                     = devices;
    params.n_gpu_layers                = on_gpu ? -1 : 0;
    params.split_mode                  = LLAMA_SPLIT_MODE_NONE;
    params.progress_callback           = on_progress;
    params.progress_callback_user_data = &part;
    params.load_mtp                    = false;
    params.kv_overrides                = repairs.overrides();

    slip_log_take_errors();
    llama_model_ptr model(llama_model_load_from_file(file.path().c_str(), params));
    if (part.stopped) {
        throw slip_failure(SLIP_CANCELLED, "Loading was cancelled.");
    }
    if (!model) {
        const std::string why = slip_log_take_errors();
        const bool memory = why.find("alloc") != std::string::npos;
        throw slip_failure(memory ? SLIP_ERROR_MEMORY : SLIP_ERROR_FILE, "`" + file.path() + "` cannot be loaded: " + why,
            memory ? "Choose a smaller quantisation or context, or the CPU." : "Convert the model again.");
    }
    return model;
}

llama_context_ptr make_context(llama_model * model, llama_context_params params) {
    slip_log_take_errors();
    llama_context_ptr ctx(llama_init_from_model(model, params));
    if (!ctx) {
        throw slip_failure(SLIP_ERROR_MEMORY,
            "A context of " + std::to_string(params.n_ctx) + " tokens cannot be made: " + slip_log_take_errors(),
            "Choose a smaller context.");
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

} // namespace

slip_models slip_load_models(const slip_load_options & options, std::atomic<bool> & cancelled) {
    if (options.n_ctx < 1 || options.n_ubatch < 8 || options.n_threads < 0) {
        throw slip_failure(SLIP_ERROR_OPTION, "Context, micro-batch or threads are out of range.",
            "Use a micro-batch of 8 tokens or more.");
    }

    slip_models out;
    out.device       = slip_device_find(options.device);
    out.draft_device = options.draft_device ? slip_device_find(options.draft_device) : out.device;
    out.n_ctx        = options.n_ctx;

    const slip_gguf_file target_file(options.target);
    target_file.require_architecture("qwen35");
    check_sizes(target_file, "qwen35");
    std::unique_ptr<slip_gguf_file> draft_file;
    if (options.draft) {
        draft_file = std::make_unique<slip_gguf_file>(options.draft);
        draft_file->require_architecture("dflash");
        check_sizes(*draft_file, "dflash");
        check_pair(target_file, *draft_file);
        out.shape = slip_drafter_shape::read(*draft_file);
    }

    const float share = draft_file ? 0.9f : 1.0f; // of the bar, for the target
    const slip_repairs repairs(target_file);
    out.repairs = repairs.told();
    out.target = load_model(target_file, repairs, out.device, { options.progress, options.user, 0.0f, share, false });
    if (draft_file) {
        out.draft = load_model(*draft_file, slip_repairs(*draft_file), out.draft_device, { options.progress, options.user, share, 1.0f, false });
    }

    const int32_t threads = options.n_threads > 0 ? options.n_threads : slip_cpu_cores();
    // The widest pass that is verified: llama.cpp wants room for one token more in a micro-batch.
    const int32_t verify  = std::max(1, std::min({ out.shape.block, options.n_ubatch - 1, options.n_ctx - 1 }));

    llama_context_params params = llama_context_default_params();
    params.n_ctx               = static_cast<uint32_t>(options.n_ctx);
    params.n_batch             = static_cast<uint32_t>(options.n_ubatch);
    params.n_ubatch            = static_cast<uint32_t>(options.n_ubatch);
    params.n_seq_max           = 1;
    params.n_rs_seq            = out.shape.block ? static_cast<uint32_t>(verify - 1) : 0;
    params.n_outputs_max       = static_cast<uint32_t>(verify);
    params.n_threads           = threads;
    params.n_threads_batch     = threads;
    const bool exact = llama_model_ftype(out.target.get()) == LLAMA_FTYPE_ALL_F32;
    // Whoever keeps weights in full wants exactness: an F16 cache would add a thousand times the error
    // of all the rest, and so would the CPU's flash attention, which rounds to F16 on the way.
    const std::string kept = options.kv_type ? options.kv_type : exact ? "f32" : "f16";
    params.type_k = params.type_v = cache_type(kept.c_str(), target_file);
    if (exact && params.type_v == GGML_TYPE_F32 && !out.on_gpu()) {
        params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    }
    params.no_perf             = false; // the count of reused graphs comes with it
    params.abort_callback      = on_abort;
    params.abort_callback_data = &cancelled;
    out.ctx_target = make_context(out.target.get(), params);

    llama_context * ctx = out.ctx_target.get();
    llama_set_async_inputs(ctx, out.on_gpu());
    if (out.draft) {
        llama_set_layer_inp_on_device(ctx, true);
        const bool apart = out.draft_device != out.device;
        out.drafter = std::make_unique<slip_drafter>(
            out.shape, out.draft.get(), out.target.get(), apart ? &target_file : nullptr, ctx, out.draft_device, out.n_ctx, exact);
    }
    return out;
}

bool slip_models::on_gpu() const {
    return slip_device_is_gpu(device);
}

bool slip_models::drafts_on_gpu() const {
    return slip_device_is_gpu(draft_device);
}
