// Our operations and those that a backend of ours computes together, as cases of test-backend-ops, which includes
// this file behind its own cases and calls the two functions at the end.

#pragma once

// GGML_OP_ARGMAX: of equals the first
struct test_argmax_ties : public test_argmax {
    const int64_t distinct; // values in a row

    test_argmax_ties(std::array<int64_t, 4> ne, int64_t distinct) : test_argmax(GGML_TYPE_F32, ne), distinct(distinct) {}

    std::string vars() override {
        return test_argmax::vars() + "," + VAR_TO_STR(distinct);
    }

    void initialize_tensors(ggml_context * ctx) override {
        std::default_random_engine rng(std::random_device{}());
        for (ggml_tensor * t = ggml_get_first_tensor(ctx); t != nullptr; t = ggml_get_next_tensor(ctx, t)) {
            if (t->type != GGML_TYPE_F32) { continue; }
            for (int64_t r = 0; r < ggml_nrows(t); r++) {
                std::vector<float> data(t->ne[0]);
                for (int64_t i = 0; i < t->ne[0]; i++) {
                    data[i] = i % distinct;
                }
                std::shuffle(data.begin(), data.end(), rng);
                ggml_backend_tensor_set(t, data.data(), r * t->nb[1], t->ne[0] * sizeof(float));
            }
        }
    }
};

// GGML_OP_GATED_DELTA_NET_TRACE
struct test_gated_delta_net_trace : public test_case {
    const int64_t head_size;
    const int64_t head_count; // of keys
    const int     v_repeat;
    const int64_t n_seq_tokens;
    const int64_t n_seqs;
    const bool    kda;
    const int     replay; // tokens of the old trace that the first sequence commits, other sequences others
    const int     half;   // that holds the old trace of the first sequence, it alternates

    static constexpr int64_t n_trace = 15;

    // what the op writes, in the order in which it is computed
    ggml_tensor * attn      = nullptr;
    ggml_tensor * state_new = nullptr;
    ggml_tensor * trace_new = nullptr;

    std::string vars() override {
        return VARS_TO_STR8(head_size, head_count, v_repeat, n_seq_tokens, n_seqs, kda, replay, half);
    }

    std::string op_desc(ggml_tensor * t) override {
        GGML_UNUSED(t);
        return "GATED_DELTA_NET_TRACE";
    }

    test_gated_delta_net_trace(int64_t head_size, int64_t head_count, int v_repeat, int64_t n_seq_tokens, int64_t n_seqs,
            bool kda, int replay, int half)
        : head_size(head_size), head_count(head_count), v_repeat(v_repeat), n_seq_tokens(n_seq_tokens), n_seqs(n_seqs),
          kda(kda), replay(replay), half(half) {}

    // rows of a cache that has one more before and after them
    ggml_tensor * cache_rows(ggml_context * ctx, ggml_tensor * cache) {
        return ggml_view_2d(ctx, cache, cache->ne[0], n_seqs, cache->nb[1], cache->nb[1]);
    }

    ggml_tensor * build_graph(ggml_context * ctx) override {
        const int64_t H_v = head_count * v_repeat;
        const int64_t G   = kda ? head_size : 1;

        ggml_tensor * q      = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, head_size, head_count, n_seq_tokens, n_seqs);
        ggml_tensor * k      = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, head_size, head_count, n_seq_tokens, n_seqs);
        ggml_tensor * v      = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, head_size, H_v + 1, n_seq_tokens, n_seqs);
        ggml_tensor * g      = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, G, H_v, n_seq_tokens, n_seqs);
        ggml_tensor * beta   = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 1, H_v, n_seq_tokens, n_seqs);
        ggml_tensor * state  = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, head_size * head_size * H_v, n_seqs + 2);
        ggml_tensor * trace  = ggml_new_tensor_2d(ctx, GGML_TYPE_F32,
                ggml_gated_delta_net_trace_size(head_size, head_count, H_v, G, n_trace), n_seqs + 2);
        ggml_tensor * counts = ggml_new_tensor_2d(ctx, GGML_TYPE_I32, 2, n_seqs);
        ggml_set_name(g,      "g");
        ggml_set_name(beta,   "beta");
        ggml_set_name(trace,  "trace");
        ggml_set_name(counts, "counts");

        q = ggml_l2_norm(ctx, q, 1e-6f);
        k = ggml_l2_norm(ctx, k, 1e-6f);
        // as in qwen35, a part of a larger tensor
        v = ggml_view_4d(ctx, v, head_size, H_v, n_seq_tokens, n_seqs, v->nb[1], v->nb[2], v->nb[3], v->nb[1]);

        // written just before the op, as the cache of a sequence that begins
        state = ggml_scale_inplace(ctx, state, 0.5f);

        attn = ggml_gated_delta_net_trace(ctx,
                ggml_reshape_4d(ctx, cache_rows(ctx, state), head_size, head_size, H_v, n_seqs), cache_rows(ctx, trace),
                counts, q, k, v, g, beta, n_trace);
        if (mode == MODE_PERF || mode == MODE_SUPPORT) {
            return attn;
        }

        // The op writes state and trace in place. What reads them afterwards comes after it in the graph: that
        // holds the sources of a node from the first to the last.
        state_new = ggml_cont(ctx, state);
        trace_new = ggml_cont(ctx, trace);
        ggml_tensor * out = ggml_concat(ctx, ggml_reshape_1d(ctx, attn, ggml_nelements(attn)),
                ggml_reshape_1d(ctx, state_new, ggml_nelements(state_new)), 0);
        return ggml_concat(ctx, out, ggml_reshape_1d(ctx, trace_new, ggml_nelements(trace_new)), 0);
    }

    bool run_whole_graph() override { return true; }
    std::vector<ggml_tensor *> fusion_test_nodes() override { return { attn, state_new, trace_new }; }

    void initialize_tensors(ggml_context * ctx) override {
        for (ggml_tensor * t = ggml_get_first_tensor(ctx); t != nullptr; t = ggml_get_next_tensor(ctx, t)) {
            if (ggml_is_view_op(t->op)) { continue; }
            if (strcmp(t->name, "g") == 0) {
                init_tensor_uniform(t, -2.0f, -1e-4f);
            } else if (strcmp(t->name, "beta") == 0) {
                init_tensor_uniform(t, 0.0f, 1.0f);
            } else if (strcmp(t->name, "trace") == 0) {
                init_tensor_uniform(t);
                init_trace_gates(t);
            } else if (strcmp(t->name, "counts") == 0) {
                std::vector<int32_t> data;
                for (int i = 0; i < n_seqs; i++) {
                    data.push_back((replay + 7 * i) % (n_trace + 1));
                    data.push_back((half + i) % 2);
                }
                ggml_backend_tensor_set(t, data.data(), 0, ggml_nbytes(t));
            } else {
                init_tensor_uniform(t);
            }
        }
    }

    // both halves lie at the end of a row
    void init_trace_gates(ggml_tensor * trace) {
        std::vector<float> gates(2 * n_trace * head_count * v_repeat * (kda ? head_size : 1));
        const size_t size = gates.size() * sizeof(float);
        for (int64_t row = 0; row < trace->ne[1]; row++) {
            const size_t offset = (row + 1) * trace->nb[1] - size;
            ggml_backend_tensor_get(trace, gates.data(), offset, size);
            for (float & gate : gates) {
                gate -= 1.0f;
            }
            ggml_backend_tensor_set(trace, gates.data(), offset, size);
        }
    }
};

// What qwen35 computes before GGML_OP_GATED_DELTA_NET_TRACE, which a backend may compute as one.
struct test_gated_delta_net_inputs : public test_case {
    const int64_t head_count; // of keys
    const int     v_repeat;
    const int64_t n_seq_tokens;
    const int64_t n_seqs;

    static constexpr int64_t head_size = 128;
    static constexpr int64_t n_trace   = 15;
    static constexpr int64_t n_window  = 3;
    static constexpr int64_t n_rows    = n_window + n_trace; // of a cell

    std::vector<ggml_tensor *> results;

    std::string vars() override {
        return VARS_TO_STR4(head_count, v_repeat, n_seq_tokens, n_seqs);
    }

    std::string op_desc(ggml_tensor * t) override {
        GGML_UNUSED(t);
        return "GATED_DELTA_NET_INPUTS";
    }

    test_gated_delta_net_inputs(int64_t head_count, int v_repeat, int64_t n_seq_tokens, int64_t n_seqs)
        : head_count(head_count), v_repeat(v_repeat), n_seq_tokens(n_seq_tokens), n_seqs(n_seqs) {}

    double max_nmse_err() override { return 1e-6; }

    ggml_tensor * build_graph(ggml_context * ctx) override {
        const int64_t H_k        = head_count;
        const int64_t H_v        = head_count*v_repeat;
        const int64_t n_channels = (2*H_k + H_v)*head_size;
        const int64_t n_kept     = n_window + std::min(n_seq_tokens, n_trace);
        const size_t  row_size   = n_channels*sizeof(float);

        ggml_tensor * cells  = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, n_channels*n_rows, n_seqs);
        ggml_tensor * ids    = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, n_window*n_seqs);
        ggml_tensor * qkv    = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, n_channels, n_seq_tokens, n_seqs);
        ggml_tensor * kernel = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, n_window + 1, n_channels);
        ggml_tensor * alpha  = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, H_v, n_seq_tokens, n_seqs);
        ggml_tensor * beta   = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 1, H_v, n_seq_tokens, n_seqs);
        ggml_tensor * dt     = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, H_v);
        ggml_tensor * a      = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, H_v);
        ggml_tensor * state  = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, head_size, head_size, H_v, n_seqs);
        ggml_tensor * trace  = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, ggml_gated_delta_net_trace_size(head_size, H_k, H_v, 1, n_trace), n_seqs);
        ggml_tensor * counts = ggml_new_tensor_2d(ctx, GGML_TYPE_I32, 2, n_seqs);
        ggml_set_name(ids,    "ids");
        ggml_set_name(a,      "a");
        ggml_set_name(counts, "counts");

        ggml_tensor * window = ggml_get_rows(ctx, ggml_reshape_2d(ctx, cells, n_channels, n_rows*n_seqs), ids);
        window = ggml_reshape_3d(ctx, window, n_channels, n_window, n_seqs);
        ggml_tensor * inputs = ggml_concat(ctx, window, qkv, 1);
        ggml_tensor * copy   = ggml_cpy(ctx,
            ggml_view_2d(ctx, inputs, n_channels*n_kept, n_seqs, inputs->nb[2], (n_window + n_seq_tokens - n_kept)*row_size),
            ggml_view_2d(ctx, cells,  n_channels*n_kept, n_seqs, cells->nb[1],  (n_rows - n_kept)*row_size));

        ggml_tensor * conv = ggml_silu(ctx, ggml_ssm_conv(ctx, ggml_cont(ctx, ggml_permute(ctx, inputs, 1, 0, 2, 3)), kernel));

        const auto part = [&](const int64_t heads, const int64_t first) {
            return ggml_view_4d(ctx, conv, head_size, heads, n_seq_tokens, n_seqs,
                head_size*sizeof(float), row_size, row_size*n_seq_tokens, first*head_size*sizeof(float));
        };
        const auto norm = [&](ggml_tensor * t) {
            return ggml_scale(ctx, ggml_rms_norm(ctx, t, 1e-6f/head_size), 1.0f/sqrtf(head_size));
        };
        ggml_tensor * q = part(H_k, 0);
        ggml_tensor * k = part(H_k, H_k);
        ggml_tensor * v = part(H_v, 2*H_k);
        q = norm(q);
        k = norm(k);

        ggml_tensor * g = ggml_mul(ctx, ggml_softplus(ctx, ggml_add(ctx, alpha, dt)), a);
        g    = ggml_reshape_4d(ctx, g, 1, H_v, n_seq_tokens, n_seqs);
        beta = ggml_sigmoid(ctx, beta);

        ggml_tensor * attn = ggml_gated_delta_net_trace(ctx, state, trace, counts, q, k, v, g, beta, n_trace);

        // what goes into the cells comes first, as in the model
        ggml_tensor * kept  = ggml_view_1d(ctx, copy, n_channels, 0);
        ggml_tensor * first = ggml_concat(ctx, kept, ggml_reshape_1d(ctx, attn, ggml_nelements(attn)), 0);
        ggml_tensor * all   = ggml_cont(ctx, cells);
        results = { attn, all };
        return ggml_concat(ctx, first, ggml_reshape_1d(ctx, all, ggml_nelements(all)), 0);
    }

    bool run_whole_graph() override { return true; }
    std::vector<ggml_tensor *> fusion_test_nodes() override { return results; }

    void initialize_tensors(ggml_context * ctx) override {
        for (ggml_tensor * t = ggml_get_first_tensor(ctx); t != nullptr; t = ggml_get_next_tensor(ctx, t)) {
            if (ggml_is_view_op(t->op)) { continue; }
            if (strcmp(t->name, "ids") == 0) {
                std::vector<int32_t> data;
                for (int64_t s = 0; s < n_seqs; ++s) {
                    for (int64_t i = 0; i < n_window; ++i) {
                        data.push_back((s + 1)*n_rows - n_window - 4 - s + i); // some tokens were taken back
                    }
                }
                ggml_backend_tensor_set(t, data.data(), 0, ggml_nbytes(t));
            } else if (strcmp(t->name, "counts") == 0) {
                std::vector<int32_t> data;
                for (int64_t s = 0; s < n_seqs; ++s) {
                    data.push_back(5);
                    data.push_back(s % 2);
                }
                ggml_backend_tensor_set(t, data.data(), 0, ggml_nbytes(t));
            } else if (strcmp(t->name, "a") == 0) {
                init_tensor_uniform(t, -1.0f, -0.01f);
            } else {
                init_tensor_uniform(t, -0.5f, 0.5f);
            }
        }
    }
};

// Products of one activation with few columns, and what a backend may compute together with them.
struct test_mul_mat_few : public test_case {
    enum kind { SHARED, ADD, RESHAPE_ADD, GLU, NORM, NORM_GATED };

    const ggml_type type;
    const int64_t   n; // columns
    const int64_t   k;
    const kind      how;

    test_mul_mat_few(ggml_type type, int64_t n, int64_t k, kind how) : type(type), n(n), k(k), how(how) {}

    std::string vars() override {
        static const char * names[] = { "shared", "add", "reshape_add", "glu", "norm", "norm_gated" };
        return VARS_TO_STR3(type, n, k) + ",how=" + names[how];
    }

    std::string op_desc(ggml_tensor * t) override {
        GGML_UNUSED(t);
        return "MUL_MAT_FEW";
    }

    double max_nmse_err() override { return 5e-4; }

    bool run_whole_graph() override { return true; }

    ggml_tensor * build_graph(ggml_context * ctx) override {
        ggml_tensor * x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, k, n);

        const auto product = [&](const int64_t m) {
            return ggml_mul_mat(ctx, ggml_new_tensor_2d(ctx, type, k, m), x);
        };

        ggml_tensor * out = nullptr;
        switch (how) {
            case SHARED:
                {
                    for (const int64_t m : { 96, 32, 32, 16, 48 }) {
                        ggml_tensor * next = product(m);
                        ggml_set_name(next, "product");
                        out = out == nullptr ? next : ggml_concat(ctx, next, out, 0);
                    }
                } break;
            case ADD:
                {
                    ggml_tensor * other = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 96, n);
                    out = ggml_add(ctx, product(96), other);
                } break;
            case RESHAPE_ADD:
                {
                    ggml_tensor * other = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 96, n);
                    out = ggml_add(ctx, other, ggml_reshape_2d(ctx, product(96), 96, n));
                } break;
            case GLU:
                {
                    ggml_tensor * up   = product(96);
                    ggml_tensor * gate = product(96);
                    out = ggml_swiglu_split(ctx, gate, up);
                } break;
            case NORM:
                {
                    ggml_tensor * weight = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, k);
                    x   = ggml_mul(ctx, ggml_rms_norm(ctx, x, 1e-6f), weight);
                    out = ggml_concat(ctx, product(96), product(32), 0);
                } break;
            case NORM_GATED:
                {
                    ggml_tensor * weight = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 128);
                    ggml_tensor * gate   = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, k, n);
                    x   = ggml_mul(ctx, ggml_rms_norm(ctx, ggml_reshape_3d(ctx, x, 128, k/128, n), 1e-6f), weight);
                    x   = ggml_mul(ctx, x, ggml_silu(ctx, ggml_reshape_3d(ctx, gate, 128, k/128, n)));
                    x   = ggml_reshape_2d(ctx, x, k, n);
                    out = product(96);
                } break;
        }
        ggml_set_name(out, "out");
        return out;
    }
};

static void slipstream_cases_eval(std::vector<std::unique_ptr<test_case>> & test_cases) {
    for (int64_t n : {1, 31, 32, 33, 1025, 248320}) {
        test_cases.emplace_back(new test_argmax_ties({n, 16, 1, 1}, 3));
    }

    // few columns: what a token, or the block that verifies drafted tokens, asks of a weight
    for (ggml_type type_a : {GGML_TYPE_Q8_0, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K, GGML_TYPE_F16, GGML_TYPE_BF16}) {
        for (int64_t n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 24, 25, 32, 33}) {
            for (int64_t k : {512, 2560, 3328, 4096, 9216}) {
                test_cases.emplace_back(new test_mul_mat(type_a, GGML_TYPE_F32, 48, n, k, {1, 1}, {1, 1}));
            }
        }
        test_cases.emplace_back(new test_mul_mat(type_a, GGML_TYPE_F32, 4096, 16, 2560, {1, 1}, {1, 1}));
        test_cases.emplace_back(new test_mul_mat(type_a, GGML_TYPE_F32,   40, 16, 2560, {1, 1}, {1, 1})); // not whole tiles
        for (int64_t n : {1, 7, 16, 17, 32}) {
            for (auto how : {test_mul_mat_few::SHARED, test_mul_mat_few::ADD, test_mul_mat_few::RESHAPE_ADD, test_mul_mat_few::GLU,
                             test_mul_mat_few::NORM, test_mul_mat_few::NORM_GATED}) {
                test_cases.emplace_back(new test_mul_mat_few(type_a, n, 2560, how));
            }
        }
    }

    for (bool kda : {false, true}) {
        for (int n_tokens : {1, 3, 15, 16, 17, 40}) {
            test_cases.emplace_back(new test_gated_delta_net_trace( 16, 2, 1, n_tokens, 1, kda,  4, 0));
            test_cases.emplace_back(new test_gated_delta_net_trace( 32, 2, 2, n_tokens, 3, kda,  9, 1));
            test_cases.emplace_back(new test_gated_delta_net_trace( 64, 3, 1, n_tokens, 3, kda, 15, 0));
            test_cases.emplace_back(new test_gated_delta_net_trace(128, 2, 2, n_tokens, 1, kda, 15, 1));
        }
        for (int replay = 0; replay <= 15; replay++) {
            test_cases.emplace_back(new test_gated_delta_net_trace(64, 2, 2, 16, 1, kda, replay, replay % 2));
        }
        test_cases.emplace_back(new test_gated_delta_net_trace(128, 2, 2, 1, 3, kda, 0, 0));
        // nothing to commit: the state is not written
        test_cases.emplace_back(new test_gated_delta_net_trace(16, 2, 2, 15, 1, kda, 0, 1));
    }
    test_cases.emplace_back(new test_gated_delta_net_trace(128, 16, 2, 16, 1, false, 6, 0)); // Qwen3.5-4B
    test_cases.emplace_back(new test_gated_delta_net_trace(128, 16, 2, 40, 2, false, 6, 1));

    for (int n_tokens : {1, 2, 7, 15, 16, 17, 32, 33}) {
        test_cases.emplace_back(new test_gated_delta_net_inputs( 2, 2, n_tokens, 1));
        test_cases.emplace_back(new test_gated_delta_net_inputs( 2, 1, n_tokens, 3));
    }
    test_cases.emplace_back(new test_gated_delta_net_inputs(16, 2, 16, 1)); // Qwen3.5-4B
}

static void slipstream_cases_perf(std::vector<std::unique_ptr<test_case>> & test_cases) {
    // Qwen3.5-4B: a token, and a block of 16 that verifies drafted tokens
    for (ggml_type type_a : {GGML_TYPE_Q8_0, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K, GGML_TYPE_BF16}) {
        for (int64_t n : {1, 8, 16}) {
            test_cases.emplace_back(new test_mul_mat(type_a, GGML_TYPE_F32,     32, n, 2560, {1, 1}, {1, 1}));
            test_cases.emplace_back(new test_mul_mat(type_a, GGML_TYPE_F32,   9216, n, 2560, {1, 1}, {1, 1}));
            test_cases.emplace_back(new test_mul_mat(type_a, GGML_TYPE_F32,   2560, n, 9216, {1, 1}, {1, 1}));
            test_cases.emplace_back(new test_mul_mat(type_a, GGML_TYPE_F32, 248320, n, 2560, {1, 1}, {1, 1}));
        }
    }

    test_cases.emplace_back(new test_gated_delta_net_trace(128, 16, 2,   1, 1, false, 0, 0)); // plain step
    test_cases.emplace_back(new test_gated_delta_net_trace(128, 16, 2,  16, 1, false, 6, 0)); // verify
    test_cases.emplace_back(new test_gated_delta_net_trace(128, 16, 2, 512, 1, false, 0, 0)); // PP-512
}
