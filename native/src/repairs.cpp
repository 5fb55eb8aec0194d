#include "repairs.h"

#include "failure.h"

#include <cstdio>

namespace {

// Qwen's end of a turn. llama.cpp would take token 11, a comma, where a file names none.
constexpr const char * k_end = "<|im_end|>";

llama_model_kv_override overriding(const std::string & key, llama_model_kv_override_type tag) {
    llama_model_kv_override out = {};
    out.tag = tag;
    std::snprintf(out.key, sizeof(out.key), "%s", key.c_str());
    return out;
}

bool names_token(const slip_gguf_file & file, const std::string & key) {
    if (!file.has(key)) {
        return false;
    }
    const int64_t id = file.number(key);
    return id >= 0 && id < file.n_tokens();
}

} // namespace

slip_repairs::slip_repairs(const slip_gguf_file & file) {
    const std::string pre = "tokenizer.ggml.pre", eos = "tokenizer.ggml.eos_token_id";
    const bool lacks_pre = file.text(pre).empty(), lacks_end = !names_token(file, eos);
    if (!lacks_pre && !lacks_end) {
        return;
    }
    const int64_t end = file.find_token(k_end);
    if (end < 0) {
        throw slip_failure(SLIP_ERROR_FILE,
            "`" + file.path() + "` does not say " + (lacks_end ? "which token ends an answer (`" + eos : "how text is split (`" + pre) +
                "`), and has no `" + k_end + "` as Qwen3.5 does.",
            "Convert the original model again, or choose another file.");
    }
    if (lacks_pre) {
        auto repair = overriding(pre, LLAMA_KV_OVERRIDE_TYPE_STR);
        std::snprintf(repair.val_str, sizeof(repair.val_str), "qwen35");
        overrides_.push_back(repair);
        told_ += "`" + pre + "` is missing: text is split as Qwen3.5 does. ";
    }
    if (lacks_end) {
        auto repair = overriding(eos, LLAMA_KV_OVERRIDE_TYPE_INT);
        repair.val_i64 = end;
        overrides_.push_back(repair);
        told_ += "`" + eos + "` names no token: `" + k_end + "` ends an answer. ";
    }
    told_.pop_back();
    overrides_.push_back({});
}
