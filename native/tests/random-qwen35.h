// A small random Qwen3.5 target as a file: one layer with a gated delta net, one with attention.

#pragma once

#include "ggml-cpp.h"
#include "ggml.h"
#include "gguf.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

struct qwen35_shape {
    int64_t n_embd, n_ff, n_head, n_head_kv, head_dim, n_key_heads, n_value_heads, state_dim, n_vocab;

    static qwen35_shape small() { return { 512, 1024, 4, 2, 256, 4, 8, 128, 1024 }; }
    static qwen35_shape of_4b() { return { 2560, 9216, 16, 4, 256, 16, 32, 128, 4096 }; }
};

// `n` values as the type stores them. They repeat after 61 rows, a number that no tile divides: quantizing all of a
// large matrix takes longer than the test.
inline std::vector<uint8_t> random_weights(ggml_type type, int64_t n_per_row, int64_t n_rows, float sigma, std::mt19937 & random) {
    const int64_t n_own = std::min<int64_t>(n_rows, 61);
    const size_t  row   = ggml_row_size(type, n_per_row);
    std::normal_distribution<float> normal(0.0f, sigma);
    std::vector<float> values(n_own * n_per_row);
    for (float & v : values) { v = normal(random); }
    std::vector<uint8_t> out(row * n_rows);
    ggml_quantize_chunk(type, values.data(), out.data(), 0, n_own, n_per_row, nullptr);
    for (int64_t r = n_own; r < n_rows; ++r) {
        std::memcpy(out.data() + r * row, out.data() + r % n_own * row, row);
    }
    return out;
}

// Each `interval`-th layer is attention, the others are delta nets. False: it could not be written.
inline bool write_random_qwen35(const std::string & path, const qwen35_shape & s, ggml_type type, int n_layers = 2, int interval = 2) {
    gguf_context_ptr file(gguf_init_empty());
    gguf_context * g = file.get();
    const auto number = [&](const char * key, int64_t value) { gguf_set_val_u32(g, (std::string("qwen35.") + key).c_str(), uint32_t(value)); };
    gguf_set_val_str(g, "general.architecture", "qwen35");
    gguf_set_val_str(g, "tokenizer.ggml.model", "none");
    number("block_count", n_layers);
    number("context_length", 262144);
    number("embedding_length", s.n_embd);
    number("feed_forward_length", s.n_ff);
    number("attention.head_count", s.n_head);
    number("attention.head_count_kv", s.n_head_kv);
    number("attention.key_length", s.head_dim);
    number("attention.value_length", s.head_dim);
    number("rope.dimension_count", s.head_dim / 4);
    number("full_attention_interval", interval);
    number("ssm.conv_kernel", 4);
    number("ssm.state_size", s.state_dim);
    number("ssm.group_count", s.n_key_heads);
    number("ssm.time_step_rank", s.n_value_heads);
    number("ssm.inner_size", s.state_dim * s.n_value_heads);
    number("vocab_size", s.n_vocab);
    gguf_set_val_f32(g, "qwen35.attention.layer_norm_rms_epsilon", 1e-6f);
    gguf_set_val_f32(g, "qwen35.rope.freq_base", 1e7f);
    const int32_t sections[4] = { 11, 11, 10, 0 };
    gguf_set_arr_data(g, "qwen35.rope.dimension_sections", GGUF_TYPE_INT32, sections, 4);

    std::mt19937 random(20);
    ggml_context_ptr tensors(ggml_init({ (16 * size_t(n_layers) + 8) * ggml_tensor_overhead(), nullptr, /*no_alloc*/ true }));
    std::vector<std::vector<uint8_t>> data; // until it is written
    const auto add = [&](const std::string & name, ggml_type t, int64_t n_in, int64_t n_out, std::vector<uint8_t> values) {
        ggml_tensor * x = n_out > 0 ? ggml_new_tensor_2d(tensors.get(), t, n_in, n_out) : ggml_new_tensor_1d(tensors.get(), t, n_in);
        ggml_set_name(x, name.c_str());
        data.push_back(std::move(values));
        gguf_add_tensor(g, x);
        gguf_set_tensor_data(g, name.c_str(), data.back().data());
    };
    const auto matrix = [&](const std::string & name, int64_t n_in, int64_t n_out) {
        add(name, type, n_in, n_out, random_weights(type, n_in, n_out, 1.0f / std::sqrt(float(n_in)), random));
    };
    const auto vector = [&](const std::string & name, int64_t n, float mean, float sigma) {
        std::normal_distribution<float> normal(mean, sigma);
        std::vector<uint8_t> values(n * sizeof(float));
        for (int64_t i = 0; i < n; ++i) {
            const float v = normal(random);
            std::memcpy(values.data() + i * sizeof(v), &v, sizeof(v));
        }
        add(name, GGML_TYPE_F32, n, 0, std::move(values));
    };

    const int64_t keys = s.n_key_heads * s.state_dim, values = s.n_value_heads * s.state_dim;
    matrix("token_embd.weight", s.n_embd, s.n_vocab); // and the head
    vector("output_norm.weight", s.n_embd, 1.0f, 0.1f);
    for (int layer = 0; layer < n_layers; ++layer) {
        const std::string p = "blk." + std::to_string(layer) + ".";
        vector(p + "attn_norm.weight", s.n_embd, 1.0f, 0.1f);
        vector(p + "post_attention_norm.weight", s.n_embd, 1.0f, 0.1f);
        if ((layer + 1) % interval != 0) {
            matrix(p + "attn_qkv.weight", s.n_embd, 2 * keys + values);
            matrix(p + "attn_gate.weight", s.n_embd, values);
            add(p + "ssm_conv1d.weight", GGML_TYPE_F32, 4, 2 * keys + values, random_weights(GGML_TYPE_F32, 4, 2 * keys + values, 0.5f, random));
            vector(p + "ssm_dt.bias", s.n_value_heads, 0.0f, 1.0f);
            vector(p + "ssm_a", s.n_value_heads, -0.3f, 0.05f);
            matrix(p + "ssm_beta.weight", s.n_embd, s.n_value_heads);
            matrix(p + "ssm_alpha.weight", s.n_embd, s.n_value_heads);
            vector(p + "ssm_norm.weight", s.state_dim, 1.0f, 0.1f);
            matrix(p + "ssm_out.weight", values, s.n_embd);
        } else {
            matrix(p + "attn_q.weight", s.n_embd, 2 * s.n_head * s.head_dim);
            matrix(p + "attn_k.weight", s.n_embd, s.n_head_kv * s.head_dim);
            matrix(p + "attn_v.weight", s.n_embd, s.n_head_kv * s.head_dim);
            matrix(p + "attn_output.weight", s.n_head * s.head_dim, s.n_embd);
            vector(p + "attn_q_norm.weight", s.head_dim, 1.0f, 0.1f);
            vector(p + "attn_k_norm.weight", s.head_dim, 1.0f, 0.1f);
        }
        matrix(p + "ffn_gate.weight", s.n_embd, s.n_ff);
        matrix(p + "ffn_up.weight", s.n_embd, s.n_ff);
        matrix(p + "ffn_down.weight", s.n_ff, s.n_embd);
    }
    return gguf_write_to_file(g, path.c_str(), /*only_meta*/ false);
}
