#include "header_check.h"

#include "failure.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

namespace {

constexpr int64_t k_max_layers = 512; // of llama.cpp

class header_check {
public:
    header_check(const slip_gguf_file & file, const std::string & architecture) : file_(file), prefix_(architecture + ".") {}

    // A key that has to be there, in that range.
    int64_t within(const char * key, int64_t least, int64_t most) const {
        const int64_t found = file_.number(prefix_ + key);
        if (found < least || found > most) {
            refuse(key, found, "it has to be within " + std::to_string(least) + " and " + std::to_string(most));
        }
        return found;
    }

    // One that some files leave out, or give for each layer.
    std::optional<int64_t> if_one(const char * key, int64_t least, int64_t most) const {
        if (!file_.has(prefix_ + key) || file_.is_array(prefix_ + key)) {
            return std::nullopt;
        }
        return within(key, least, most);
    }

    // The first `n` of an array together, or one number so often; 0 without such a key.
    int64_t together(const char * key, size_t n) const {
        if (!file_.has(prefix_ + key)) {
            return 0;
        }
        if (!file_.is_array(prefix_ + key)) {
            return int64_t(n) * file_.number(prefix_ + key);
        }
        const std::vector<int64_t> found = file_.numbers(prefix_ + key);
        return std::accumulate(found.begin(), found.begin() + std::min(n, found.size()), int64_t(0));
    }

    void divides(const char * key, const char * into) const {
        const auto n = if_one(key, 1, INT32_MAX), whole = if_one(into, 1, INT32_MAX);
        if (n && whole && *whole % *n != 0) {
            refuse(key, *n, "`" + prefix_ + into + "` = " + std::to_string(*whole) + " is no multiple of it");
        }
    }

    [[noreturn]] void refuse(const char * key, int64_t found, const std::string & why) const {
        throw slip_failure(SLIP_ERROR_FILE,
            "`" + file_.path() + "` has `" + prefix_ + key + "` = " + std::to_string(found) + ": " + why + ".", "Convert the model again.");
    }

private:
    const slip_gguf_file & file_;
    const std::string      prefix_;
};

// What is multiplied or added as it is has to be F32; a matrix of any type that can be turned into numbers.
void check_tensor(const slip_gguf_file & file, const ggml_tensor & tensor) {
    const std::string name = ggml_get_name(&tensor);
    const bool vector = ggml_n_dims(&tensor) == 1 || name.find("ssm_conv1d") != std::string::npos;
    const bool fits = tensor.type == GGML_TYPE_F32 || (!vector && ggml_get_type_traits(tensor.type)->to_float);
    if (!fits) {
        throw slip_failure(SLIP_ERROR_FILE,
            "`" + file.path() + "` holds `" + name + "` as " + ggml_type_name(tensor.type) + (vector ? "; it has to be f32." : ", which no model is made of."),
            "Convert the model again.");
    }
}

} // namespace

void slip_check_vocabulary(const slip_gguf_file & file) {
    const std::string model = file.text("tokenizer.ggml.model");
    if (file.n_tokens() < 1 || model != "gpt2") {
        throw slip_failure(SLIP_ERROR_FILE,
            "`" + file.path() + "` has " + std::to_string(file.n_tokens()) + " tokens of the kind `" + model + "`; Qwen3.5 has them as `gpt2` (`tokenizer.ggml.model`).",
            "Convert the model again.");
    }
}

void slip_check_header(const slip_gguf_file & file, const std::string & architecture) {
    file.require_architecture(architecture);
    file.require_numbers(architecture + ".");
    file.each_tensor([&](const ggml_tensor & tensor) { check_tensor(file, tensor); });
    slip_check_vocabulary(file);

    const header_check check(file, architecture);
    const int64_t n_layers = check.within("block_count", 1, k_max_layers);
    const int64_t width = check.within("embedding_length", 1, INT32_MAX);
    check.divides("attention.head_count_kv", "attention.head_count");
    const auto heads   = check.if_one("attention.head_count", 1, INT32_MAX);
    const auto keys    = check.if_one("attention.key_length", 1, INT32_MAX);
    const auto values  = check.if_one("attention.value_length", 1, INT32_MAX);
    const int64_t head = keys ? *keys : heads ? width / *heads : width;
    if (values && *values != head) {
        check.refuse("attention.value_length", *values, "keys have " + std::to_string(head));
    }
    if (const auto turned = check.if_one("rope.dimension_count", 2, head); turned && *turned % 2 != 0) {
        check.refuse("rope.dimension_count", *turned, "it has to be even");
    }
    // llama.cpp ends the process where a head has fewer dimensions than they take, or where they take none.
    if (const int64_t n = check.together("rope.dimension_sections", 4); n > head) {
        check.refuse("rope.dimension_sections", n, "a head has " + std::to_string(head) + " dimensions");
    }
    if (architecture == "qwen35") {
        if (check.together("rope.dimension_sections", 3) < 1) {
            check.refuse("rope.dimension_sections", 0, "none of the first three has a dimension");
        }
        for (int64_t il = 0; il < n_layers; ++il) {
            const std::string layer = "blk." + std::to_string(il) + ".";
            if (file.has_tensor(layer + "ssm_conv1d.weight")) {
                file.tensor(layer + "attn_qkv.weight"); // llama.cpp does without, and computes with them
                file.tensor(layer + "attn_gate.weight");
            }
        }
        check.if_one("nextn_predict_layers", 0, n_layers - 1);
        check.if_one("full_attention_interval", 1, INT32_MAX);
        check.within("ssm.conv_kernel", 2, INT32_MAX);
        check.divides("ssm.group_count", "ssm.time_step_rank");
        const int64_t n = check.within("ssm.time_step_rank", 1, INT32_MAX), size = check.within("ssm.state_size", 1, INT32_MAX);
        if (const int64_t inner = file.number("qwen35.ssm.inner_size"); inner != n * size) {
            check.refuse("ssm.inner_size", inner, "there are " + std::to_string(n) + " heads of " + std::to_string(size));
        }
    }
}
