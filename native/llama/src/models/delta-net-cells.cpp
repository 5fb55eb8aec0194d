// Rollback by trace in the graph of a model with gated delta nets: the states and the convolution's inputs in their
// cells, and what a pass is told of them. See llama_memory_recurrent::has_trace.
//
// How many tokens of the old trace a pass commits, and which rows are the convolution's window, are data: the graph has
// the same shape, and is used again, whatever was accepted.

#include "models.h"

#include "llama-memory-recurrent.h"

// --- inputs of the graph -----------------------------------------------------

void llm_graph_input_rs::build_trace(ggml_context * ctx0, const llama_ubatch & ubatch, const llama_hparams & hparams, const llama_cparams & cparams) {
    const int64_t n_seqs = ubatch.n_seqs;
    const auto input = [&](ggml_type type, int64_t ne0, int64_t ne1, const char * name) {
        ggml_tensor * x = ggml_new_tensor_2d(ctx0, type, ne0, ne1);
        ggml_set_input(x);
        ggml_set_name(x, name);
        return x;
    };

    in_place  = mctx->is_in_place(n_seqs);
    replay    = input(GGML_TYPE_I32, 2, n_seqs, "rs_replay");
    conv_rows = input(GGML_TYPE_I32, (hparams.ssm_d_conv - 1)*n_seqs, 1, "rs_conv_rows");
    if (!cparams.fused_gdn_trace) {
        const int64_t n_trace = mctx->get_n_trace();
        trace_mask = input(GGML_TYPE_F32, n_trace, n_seqs, "rs_trace_mask");
        trace_rows = input(GGML_TYPE_I64, std::min<int64_t>(ubatch.n_seq_tokens, n_trace), n_seqs, "rs_trace_rows");
    }
}

void llm_graph_input_rs::set_input_trace(const llama_ubatch * ubatch) {
    const int32_t n_seqs   = (int32_t) ubatch->n_seqs;
    const int32_t n_window = (int32_t) (conv_rows->ne[0] / n_seqs);
    const int32_t n_trace  = (int32_t) mctx->get_n_trace();
    const int32_t n_rows   = n_window + n_trace; // of a cell
    const int32_t n_traced = std::min((int32_t) ubatch->n_seq_tokens, n_trace);

    std::vector<int32_t> replay_data, conv_data;
    std::vector<float>   mask_data;
    std::vector<int64_t> rows_data;
    for (int32_t s = 0; s < n_seqs; ++s) {
        const auto trace = mctx->get_trace(s);
        replay_data.push_back((int32_t) trace.keep);
        replay_data.push_back((int32_t) trace.half);
        for (int32_t i = 0; i < n_trace; ++i) {
            mask_data.push_back(i < (int32_t) trace.keep ? 1.0f : 0.0f);
        }
        for (int32_t i = 0; i < n_traced; ++i) {
            rows_data.push_back((1 - (int64_t) trace.half)*n_trace + i);
        }

        // what was taken back lies at the end of the cell
        const int32_t n_back = (int32_t) (trace.len - trace.keep);
        for (int32_t i = 0; i < n_window; ++i) {
            conv_data.push_back(((int32_t) mctx->get_head() + s + 1)*n_rows - n_window - n_back + i);
        }

        mctx->begin_trace(s, ubatch->n_seq_tokens);
    }

    // a graph without recurrent layers has no use for them
    const auto set = [](ggml_tensor * x, const void * data) {
        if (x && x->buffer) {
            ggml_backend_tensor_set(x, data, 0, ggml_nbytes(x));
        }
    };
    set(replay,     replay_data.data());
    set(conv_rows,  conv_data.data());
    set(trace_mask, mask_data.data());
    set(trace_rows, rows_data.data());
}

bool llm_graph_input_rs::can_reuse_trace(const llama_memory_recurrent_context * mctx, uint32_t n_seqs) const {
    return replay ? mctx->has_trace() && in_place == mctx->is_in_place(n_seqs) : !mctx->has_trace();
}

// --- cells -------------------------------------------------------------------

ggml_tensor * llm_build_delta_net_base::build_delta_net_state(
        llm_graph_input_rs * inp,
        ggml_tensor *        ssm_states_all,
        int64_t              head_v_dim,
        int64_t              num_v_heads,
        int                  il) {
    const int64_t n_seqs = ubatch.n_seqs;

    ggml_tensor * state = inp->mctx->has_trace()
        ? build_rows_in_place(inp, ssm_states_all)
        : build_rs(inp, ssm_states_all, hparams.n_embd_s(), n_seqs);

    state = ggml_reshape_4d(ctx0, state, head_v_dim, head_v_dim, num_v_heads, n_seqs);
    cb(state, "state_rows", il);

    return state;
}

ggml_tensor * llm_build_delta_net_base::build_rows_in_place(llm_graph_input_rs * inp, ggml_tensor * all) {
    const auto * mctx_cur = inp->mctx;

    const int64_t n_seqs = ubatch.n_seqs;
    const int64_t n_rs   = mctx_cur->get_n_rs();
    const int64_t n_row  = all->ne[0] * (all->ne[1] / mctx_cur->get_size());
    const size_t  size   = ggml_row_size(all->type, n_row);
    const size_t  head   = mctx_cur->get_head();
    const int32_t zero   = mctx_cur->get_rs_z();

    ggml_tensor * rows = ggml_reshape_2d(ctx0, all, n_row, mctx_cur->get_size());

    // a cell for sequences that begin
    if (zero >= 0) {
        ggml_build_forward_expand(gf, ggml_scale_inplace(ctx0, ggml_view_1d(ctx0, rows, n_row, zero*size), 0));
    }

    ggml_tensor * here = ggml_view_2d(ctx0, rows, n_row, n_seqs, size, head*size);
    if (inp->in_place && n_rs == n_seqs) {
        return here;
    }

    // all are read before one is written
    ggml_tensor * moved = ggml_get_rows(ctx0, rows, inp->s_copy_main);
    ggml_build_forward_expand(gf, moved);
    if (n_rs > n_seqs) {
        ggml_tensor * extra = ggml_get_rows(ctx0, rows, inp->s_copy_extra);
        ggml_build_forward_expand(gf,
                ggml_cpy(ctx0, extra, ggml_view_2d(ctx0, rows, n_row, n_rs - n_seqs, size, (head + n_seqs)*size)));
    }
    here = ggml_cpy(ctx0, moved, here);
    ggml_build_forward_expand(gf, here);

    return here;
}

ggml_tensor * llm_build_delta_net_base::build_conv_state_trace(
        llm_graph_input_rs * inp,
        ggml_tensor *        conv_inputs_all,
        ggml_tensor *        qkv_mixed,
        int64_t              conv_kernel_size,
        int                  il) {
    const auto * mctx_cur = inp->mctx;

    const int64_t n_seqs     = ubatch.n_seqs;
    const int64_t n_tokens   = qkv_mixed->ne[1];
    const int64_t n_channels = qkv_mixed->ne[0];
    const int64_t n_window   = conv_kernel_size - 1;
    const int64_t n_rows     = n_window + mctx_cur->get_n_trace(); // tokens of a cell, the latest last
    const int64_t n_kept     = n_window + std::min<int64_t>(n_tokens, mctx_cur->get_n_trace());
    const size_t  row_size   = ggml_row_size(conv_inputs_all->type, n_channels);

    ggml_tensor * cells = build_rows_in_place(inp, conv_inputs_all);

    // the window that ends at the last kept token, wherever that lies in the cell
    ggml_tensor * window = ggml_get_rows(ctx0, ggml_reshape_2d(ctx0, conv_inputs_all, n_channels, n_rows*mctx_cur->get_size()), inp->conv_rows);
    window = ggml_reshape_3d(ctx0, window, n_channels, n_window, n_seqs);
    cb(window, "conv_window", il);

    ggml_tensor * inputs = ggml_concat(ctx0, window, qkv_mixed, 1); // (n_channels, n_window + n_tokens, n_seqs)
    cb(inputs, "conv_inputs", il);

    ggml_tensor * src = ggml_view_2d(ctx0, inputs, n_channels*n_kept, n_seqs, inputs->nb[2], (n_window + n_tokens - n_kept)*row_size);
    ggml_tensor * dst = ggml_view_2d(ctx0, cells,  n_channels*n_kept, n_seqs, cells->nb[1],  (n_rows - n_kept)*row_size);
    ggml_build_forward_expand(gf, ggml_cpy(ctx0, src, dst));

    ggml_tensor * conv_input = ggml_cont(ctx0, ggml_permute(ctx0, inputs, 1, 0, 2, 3));
    cb(conv_input, "conv_input", il);

    return conv_input;
}

ggml_tensor * llm_build_delta_net_base::build_recurrent_attn_trace(
        llm_graph_input_rs * inp,
        ggml_tensor *        q,
        ggml_tensor *        k,
        ggml_tensor *        v,
        ggml_tensor *        g,
        ggml_tensor *        b,
        ggml_tensor *        s,
        int                  il) {
    ggml_tensor * trace  = build_rows_in_place(inp, inp->mctx->get_t_l(il));
    ggml_tensor * output = nullptr;
    if (cparams.fused_gdn_trace) {
        output = ggml_gated_delta_net_trace(ctx0, s, trace, inp->replay, q, k, v, g, b, inp->mctx->get_n_trace());
        res->add_fused_node({LLM_FUSED_OP_GDN_TRACE, output, il});
    } else {
        const auto cb = [this](ggml_tensor * cur, const char * name, int il) { this->cb(cur, name, il); };
        output = llm_delta_net_trace(ctx0, gf, cb, {s, trace, inp->replay, inp->trace_mask, inp->trace_rows}, q, k, v, g, b, il);
    }
    cb(output, "attn_output", il);
    return output;
}
