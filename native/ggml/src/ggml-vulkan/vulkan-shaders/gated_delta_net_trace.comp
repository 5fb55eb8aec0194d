#version 450

#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : enable
#if USE_SUBGROUP_CLUSTERED
#extension GL_KHR_shader_subgroup_clustered : enable
#endif
#if USE_SUBGROUP_ADD
#extension GL_KHR_shader_subgroup_arithmetic : enable
#endif

// Gated delta net that can be rewound, see ggml_gated_delta_net_trace in ggml.h.
// Columns are spread over workgroups and lanes as in gated_delta_net.comp.

// Caller guarantees valid spec constants: S_V % COLS_PER_WG == 0 and S_V % LANES_PER_COLUMN == 0,
// so no bounds checking is needed.
layout(constant_id = 0) const uint S_V = 128;
layout(constant_id = 1) const uint KDA = 0;
layout(constant_id = 2) const uint SUBGROUP_SIZE = 32;
layout(constant_id = 3) const uint LANES_PER_COLUMN = 32;

const uint COLS_PER_WG = SUBGROUP_SIZE / LANES_PER_COLUMN;
const uint ROWS_PER_LANE = S_V / LANES_PER_COLUMN;
const uint G = KDA != 0 ? S_V : 1;

layout(local_size_x_id = 2, local_size_y = 1, local_size_z = 1) in;

layout(push_constant) uniform Parameters {
    uint H_v, H_k;
    uint n_tokens;
    uint n_trace, trace_size;
    uint sq1, sq2, sq3;
    uint sv1, sv2, sv3;
    float scale;
    // where the tensors begin in their buffers
    uint state_off, trace_off, replay_off, q_off, k_off, v_off, g_off, beta_off, dst_off;
};

layout(binding = 0)           buffer StateBuf  { FLOAT_TYPE data_state[]; };
layout(binding = 1)           buffer TraceBuf  { FLOAT_TYPE data_trace[]; };
layout(binding = 2) readonly  buffer ReplayBuf { int        data_replay[]; };
layout(binding = 3) readonly  buffer QBuf      { FLOAT_TYPE data_q[];     };
layout(binding = 4) readonly  buffer KBuf      { FLOAT_TYPE data_k[];     };
layout(binding = 5) readonly  buffer VBuf      { FLOAT_TYPE data_v[];     };
layout(binding = 6) readonly  buffer GBuf      { FLOAT_TYPE data_g[];     };
layout(binding = 7) readonly  buffer BetaBuf   { FLOAT_TYPE data_beta[];  };
layout(binding = 8) writeonly buffer DstBuf    { FLOAT_TYPE data_dst[];   };

#include "gated_delta_net_reduce.glsl"

// The two halves of S' = alpha S + k u^T. Replay and run share them, and precise keeps the compiler
// from contracting them differently: the replayed state has the bits that it had when the token ran.
FLOAT_TYPE decay(FLOAT_TYPE s, FLOAT_TYPE alpha) {
    precise FLOAT_TYPE decayed = s * alpha;
    return decayed;
}

FLOAT_TYPE update(FLOAT_TYPE decayed, FLOAT_TYPE k, FLOAT_TYPE u) {
    precise FLOAT_TYPE updated = decayed + k * u;
    return updated;
}

void main() {
    const uint head = gl_WorkGroupID.x;
    const uint seq = gl_WorkGroupID.y;
    const uint lane = gl_SubgroupInvocationID % LANES_PER_COLUMN;
    const uint col = gl_WorkGroupID.z * COLS_PER_WG + (gl_SubgroupInvocationID / LANES_PER_COLUMN);
    const uint head_k = head % H_k;

    const uint n_replay = uint(clamp(data_replay[replay_off + 2 * seq], 0, int(n_trace)));
    const uint half_old = uint(data_replay[replay_off + 2 * seq + 1]);
    const uint n_commit = n_tokens > n_trace ? n_tokens - n_trace : 0;

    // the first token of the trace, for this head and column
    const uint trace_row = trace_off + seq * trace_size;
    const uint trace_u   = trace_row + head * S_V + col;
    const uint trace_k   = trace_row + n_trace * H_v * S_V + head_k * S_V;
    const uint trace_g   = trace_row + n_trace * (H_v + 2 * H_k) * S_V + head * G;

    const uint state_base = state_off + ((seq * H_v + head) * S_V + col) * S_V + lane;

    FLOAT_TYPE s_shard[ROWS_PER_LANE];
    [[unroll]] for (uint r = 0; r < ROWS_PER_LANE; r++) {
        s_shard[r] = data_state[state_base + r * LANES_PER_COLUMN];
    }

    for (uint t = 0; t < n_replay; t++) {
        const uint slot = half_old * n_trace + t;
        const FLOAT_TYPE u = data_trace[trace_u + t * H_v * S_V];

        FLOAT_TYPE alpha = 0.0;
        [[unroll]] for (uint r = 0; r < ROWS_PER_LANE; r++) {
            const uint i = r * LANES_PER_COLUMN + lane;
            if (KDA != 0 || r == 0) {
                alpha = exp(data_trace[trace_g + slot * H_v * G + (KDA != 0 ? i : 0)]);
            }
            s_shard[r] = update(decay(s_shard[r], alpha), data_trace[trace_k + slot * H_k * S_V + i], u);
        }
    }

    // all lanes of a column have read u before its first lane writes the new one
    barrier();

    for (uint t = 0; t < n_tokens; t++) {
        if (t == n_commit && (n_replay > 0 || n_commit > 0)) {
            [[unroll]] for (uint r = 0; r < ROWS_PER_LANE; r++) {
                data_state[state_base + r * LANES_PER_COLUMN] = s_shard[r];
            }
        }

        const uint token = seq * n_tokens + t;
        const uint qk_base = seq * sq3 + t * sq2 + head_k * sq1 + lane;

        const bool traced = t >= n_commit;
        const bool traced_by_head = traced && col == 0;
        const uint slot = (1 - half_old) * n_trace + t - n_commit;

        FLOAT_TYPE k_reg[ROWS_PER_LANE];
        FLOAT_TYPE q_reg[ROWS_PER_LANE];
        [[unroll]] for (uint r = 0; r < ROWS_PER_LANE; r++) {
            k_reg[r] = data_k[k_off + qk_base + r * LANES_PER_COLUMN];
            q_reg[r] = data_q[q_off + qk_base + r * LANES_PER_COLUMN];
            if (traced_by_head && head < H_k) {
                data_trace[trace_k + slot * H_k * S_V + r * LANES_PER_COLUMN + lane] = k_reg[r];
            }
        }

        FLOAT_TYPE alpha = 0.0;
        FLOAT_TYPE kv_shard = 0.0;
        [[unroll]] for (uint r = 0; r < ROWS_PER_LANE; r++) {
            const uint i = KDA != 0 ? r * LANES_PER_COLUMN + lane : 0;
            if (KDA != 0 || r == 0) {
                const FLOAT_TYPE gate = data_g[g_off + (token * H_v + head) * G + i];
                if (traced_by_head && (KDA != 0 || lane == 0)) {
                    data_trace[trace_g + slot * H_v * G + i] = gate;
                }
                alpha = exp(gate);
            }
            s_shard[r] = decay(s_shard[r], alpha);
            kv_shard += s_shard[r] * k_reg[r];
        }

        const FLOAT_TYPE v_val = data_v[v_off + seq * sv3 + t * sv2 + head * sv1 + col];
        const FLOAT_TYPE beta_val = data_beta[beta_off + token * H_v + head];
        const FLOAT_TYPE u = (v_val - reduce_partial(kv_shard)) * beta_val;

        FLOAT_TYPE attn_partial = 0.0;
        [[unroll]] for (uint r = 0; r < ROWS_PER_LANE; r++) {
            s_shard[r] = update(s_shard[r], k_reg[r], u);
            attn_partial += s_shard[r] * q_reg[r];
        }
        const FLOAT_TYPE attn_col = reduce_partial(attn_partial);

        if (lane == 0) {
            data_dst[dst_off + (token * H_v + head) * S_V + col] = attn_col * scale;
            if (traced) {
                data_trace[trace_u + (t - n_commit) * H_v * S_V] = u;
            }
        }
    }
}
