// Recurrent memory that rolls back by a trace: whether it does, how large it is, what a pass asks of it.

#include "llama-memory-recurrent.h"

#include "llama-model.h"

#include <algorithm>
#include <cstdlib>

// Whether a device has ggml_gated_delta_net with a snapshot for each of n_trace tokens, and ggml_gated_delta_net_trace.
static void trace_ask_device(ggml_backend_dev_t dev, const llama_hparams & hparams, int64_t n_trace, bool & snapshots, bool & trace) {
    const int64_t S        = hparams.ssm_d_state;
    const int64_t H_k      = hparams.ssm_n_group;
    const int64_t H_v      = hparams.ssm_dt_rank;
    const int64_t n_tokens = n_trace + 1;

    ggml_init_params params = { /*.mem_size =*/ 16*ggml_tensor_overhead(), /*.mem_buffer =*/ nullptr, /*.no_alloc =*/ true };
    ggml_context_ptr ctx(ggml_init(params));
    const auto tensor = [&](ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2) {
        return ggml_new_tensor_4d(ctx.get(), type, ne0, ne1, ne2, 1);
    };
    ggml_tensor * q     = tensor(GGML_TYPE_F32, S, H_k, n_tokens);
    ggml_tensor * k     = tensor(GGML_TYPE_F32, S, H_k, n_tokens);
    ggml_tensor * v     = tensor(GGML_TYPE_F32, S, H_v, n_tokens);
    ggml_tensor * g     = tensor(GGML_TYPE_F32, 1, H_v, n_tokens);
    ggml_tensor * b     = tensor(GGML_TYPE_F32, 1, H_v, n_tokens);
    ggml_tensor * state = tensor(GGML_TYPE_F32, S, S, H_v);
    ggml_tensor * cells = tensor(GGML_TYPE_F32, ggml_gated_delta_net_trace_size(S, H_k, H_v, 1, n_trace), 1, 1);

    snapshots = ggml_backend_dev_supports_op(dev, ggml_gated_delta_net(ctx.get(), q, k, v, g, b, state, n_tokens));
    trace     = ggml_backend_dev_supports_op(dev,
            ggml_gated_delta_net_trace(ctx.get(), state, cells, tensor(GGML_TYPE_I32, 2, 1, 1), q, k, v, g, b, n_trace));
}

// A device that has the base's fused operation and not ours keeps the former, and with it the base's snapshots; with
// neither, a trace by plain operations. LLAMA_GDN_TRACE=0 takes the traced operation away, to see that.
bool llama_memory_recurrent::can_trace(const llama_model & model, uint32_t n_trace, const layer_filter_cb & filter) {
    if (model.split_mode() == LLAMA_SPLIT_MODE_TENSOR) {
        return false; // devices that share a layer split its states, and know the base's alone
    }

    const char * LLAMA_GDN_CHUNKED = getenv("LLAMA_GDN_CHUNKED");
    const char * LLAMA_GDN_TRACE   = getenv("LLAMA_GDN_TRACE");
    if (LLAMA_GDN_CHUNKED && atoi(LLAMA_GDN_CHUNKED) != 0) {
        return true;
    }
    const bool hidden = LLAMA_GDN_TRACE && atoi(LLAMA_GDN_TRACE) == 0;

    bool all_trace     = true;
    bool all_snapshots = true;
    for (uint32_t il = 0; il < model.hparams.n_layer(); ++il) {
        ggml_backend_dev_t dev = filter && !filter(il) ? nullptr : model.dev_layer(il);
        if (dev) {
            bool snapshots, trace;
            trace_ask_device(dev, model.hparams, n_trace, snapshots, trace);
            all_trace     &= trace && !hidden;
            all_snapshots &= snapshots;
        }
    }
    return all_trace || !all_snapshots;
}

size_t llama_memory_recurrent::size_t_bytes() const {
    size_t size_t_bytes = 0;

    for (const auto & t : t_l) {
        if (t != nullptr) {
            size_t_bytes += ggml_nbytes(t);
        }
    }

    return size_t_bytes;
}

uint32_t llama_memory_recurrent::n_row_r() const {
    if (!has_trace) {
        return hparams.n_embd_r();
    }
    // the convolution's inputs, one token after the other: its window and those that may be taken back
    const uint32_t n_window = hparams.ssm_d_conv - 1;
    return (n_window + n_rs_seq) * (hparams.n_embd_r() / n_window);
}

uint32_t llama_memory_recurrent::n_row_t() const {
    return ggml_gated_delta_net_trace_size(hparams.ssm_d_state, hparams.ssm_n_group, hparams.ssm_dt_rank, 1, n_rs_seq);
}

ggml_tensor * llama_memory_recurrent_context::get_t_l(int32_t il) const {
    return mem->t_l[il];
}

bool llama_memory_recurrent_context::has_trace() const {
    return mem->has_trace;
}

uint32_t llama_memory_recurrent_context::get_n_trace() const {
    return mem->n_rs_seq;
}

bool llama_memory_recurrent_context::is_in_place(uint32_t n_seqs) const {
    if (is_full) {
        return false; // the larger graph, so that enough is reserved
    }
    for (uint32_t i = 0; i < n_seqs; ++i) {
        const uint32_t cell_idx = i + mem->head;
        if (mem->cells[cell_idx].src0 != (int32_t) cell_idx) {
            return false;
        }
    }
    return true;
}

llama_memory_recurrent::mem_cell::trace_info llama_memory_recurrent_context::get_trace(int i) const {
    return mem->cells[i + mem->head].trace;
}

void llama_memory_recurrent_context::begin_trace(int i, uint32_t n_tokens) const {
    auto & trace = mem->cells[i + mem->head].trace;
    trace.len  = std::min(n_tokens, mem->n_rs_seq);
    trace.keep = trace.len;
    trace.half = 1 - trace.half;
}
