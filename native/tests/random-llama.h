// A small random Llama as a file, attention alone, and an adapter for it: their positions can be shifted.

#pragma once

#include "random-qwen35.h"

struct llama_shape {
    static constexpr int64_t n_embd = 256, n_ff = 512, n_head = 4, n_head_kv = 2, head_dim = 64, n_vocab = 512, rank = 4;
};

class random_file {
public:
    explicit random_file(int seed) : random_(seed), file_(gguf_init_empty()),
        tensors_(ggml_init({ 64 * ggml_tensor_overhead(), nullptr, /*no_alloc*/ true })) {}

    gguf_context * gguf() { return file_.get(); }

    void matrix(const std::string & name, int64_t n_in, int64_t n_out) {
        add(name, n_in, n_out, 1.0f / std::sqrt(float(n_in)));
    }
    void vector(const std::string & name, int64_t n) { add(name, n, 0, 1.0f); }

    bool write(const std::string & path) { return gguf_write_to_file(file_.get(), path.c_str(), /*only_meta*/ false); }

private:
    void add(const std::string & name, int64_t n_in, int64_t n_out, float sigma) {
        ggml_tensor * x = n_out > 0 ? ggml_new_tensor_2d(tensors_.get(), GGML_TYPE_F32, n_in, n_out) : ggml_new_tensor_1d(tensors_.get(), GGML_TYPE_F32, n_in);
        ggml_set_name(x, name.c_str());
        data_.push_back(random_weights(GGML_TYPE_F32, n_in, std::max<int64_t>(1, n_out), sigma, random_));
        gguf_add_tensor(file_.get(), x);
        gguf_set_tensor_data(file_.get(), name.c_str(), data_.back().data());
    }

    std::mt19937     random_;
    gguf_context_ptr file_;
    ggml_context_ptr tensors_;
    std::vector<std::vector<uint8_t>> data_; // until it is written
};

// False: it could not be written.
inline bool write_random_llama(const std::string & path) {
    using s = llama_shape;
    random_file file(21);
    gguf_context * g = file.gguf();
    const auto number = [&](const char * key, int64_t value) { gguf_set_val_u32(g, (std::string("llama.") + key).c_str(), uint32_t(value)); };
    gguf_set_val_str(g, "general.architecture", "llama");
    gguf_set_val_str(g, "tokenizer.ggml.model", "none");
    number("block_count", 2);
    number("context_length", 4096);
    number("embedding_length", s::n_embd);
    number("feed_forward_length", s::n_ff);
    number("attention.head_count", s::n_head);
    number("attention.head_count_kv", s::n_head_kv);
    number("rope.dimension_count", s::head_dim);
    number("vocab_size", s::n_vocab);
    gguf_set_val_f32(g, "llama.attention.layer_norm_rms_epsilon", 1e-6f);

    file.matrix("token_embd.weight", s::n_embd, s::n_vocab); // and the head
    file.vector("output_norm.weight", s::n_embd);
    for (const char * p : { "blk.0.", "blk.1." }) {
        file.vector(std::string(p) + "attn_norm.weight", s::n_embd);
        file.vector(std::string(p) + "ffn_norm.weight", s::n_embd);
        file.matrix(std::string(p) + "attn_q.weight", s::n_embd, s::n_head * s::head_dim);
        file.matrix(std::string(p) + "attn_k.weight", s::n_embd, s::n_head_kv * s::head_dim);
        file.matrix(std::string(p) + "attn_v.weight", s::n_embd, s::n_head_kv * s::head_dim);
        file.matrix(std::string(p) + "attn_output.weight", s::n_head * s::head_dim, s::n_embd);
        file.matrix(std::string(p) + "ffn_gate.weight", s::n_embd, s::n_ff);
        file.matrix(std::string(p) + "ffn_up.weight", s::n_embd, s::n_ff);
        file.matrix(std::string(p) + "ffn_down.weight", s::n_ff, s::n_embd);
    }
    return file.write(path);
}

inline bool write_random_adapter(const std::string & path) {
    using s = llama_shape;
    random_file file(22);
    gguf_context * g = file.gguf();
    gguf_set_val_str(g, "general.type", "adapter");
    gguf_set_val_str(g, "general.architecture", "llama");
    gguf_set_val_str(g, "adapter.type", "lora");
    gguf_set_val_f32(g, "adapter.lora.alpha", 8.0f);
    for (const char * name : { "blk.0.attn_q.weight", "blk.1.ffn_up.weight" }) {
        const int64_t n_out = std::string(name) == "blk.0.attn_q.weight" ? s::n_head * s::head_dim : s::n_ff;
        file.matrix(std::string(name) + ".lora_a", s::n_embd, s::rank);
        file.matrix(std::string(name) + ".lora_b", s::rank, n_out);
    }
    return file.write(path);
}
