// The CPU's traced gated delta net alone, against the recurrence in double precision: built by a cross compiler and run
// in an emulator, for processors that are not at hand. The first argument is the number of floats in a vector that the
// build has to have taken.

#include "../ggml/src/ggml-cpu/gated-delta-net-trace.cpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

// All that the file needs of ggml's library.
extern "C" void ggml_abort(const char * file, int line, const char * format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, args);
    va_end(args);
    abort();
}

static std::mt19937 g_random(1);

struct tensor : ggml_tensor {
    std::vector<float> floats;

    tensor(int64_t ne0, int64_t ne1, int64_t ne2, float low, float high) : ggml_tensor{} {
        const int64_t sizes[] = { ne0, ne1, ne2, 1 };
        size_t bytes = sizeof(float);
        for (int i = 0; i < GGML_MAX_DIMS; ++i) {
            ne[i] = sizes[i];
            nb[i] = bytes;
            bytes *= sizes[i];
        }
        floats.resize(bytes / sizeof(float));
        std::uniform_real_distribution<float> uniform(low, high);
        for (float & x : floats) {
            x = uniform(g_random);
        }
        data = floats.data();
    }
};

// S' = alpha S + k u^T, u = beta (v - (alpha S)^T k), output S'^T q / sqrt(S); state[j][i] is S[i][j].
struct reference {
    int64_t S, G;
    std::vector<double> state;

    void decay(const float * g) {
        for (int64_t j = 0; j < S; ++j) {
            for (int64_t i = 0; i < S; ++i) {
                state[j*S + i] *= exp(double(g[G == 1 ? 0 : i]));
            }
        }
    }
    void add(const float * k, const double * u) {
        for (int64_t j = 0; j < S; ++j) {
            for (int64_t i = 0; i < S; ++i) {
                state[j*S + i] += k[i]*u[j];
            }
        }
    }
    double dot(int64_t j, const float * x) const {
        double sum = 0;
        for (int64_t i = 0; i < S; ++i) {
            sum += state[j*S + i]*x[i];
        }
        return sum;
    }
};

static double run(int64_t S, int64_t H_k, int64_t H_v, int64_t G, int64_t n_tokens, int32_t n_replay) {
    constexpr int64_t n_trace = 15;
    const int64_t size = n_trace*(H_v*S + 2*H_k*S + 2*H_v*G);
    const float   near = 1.0f/sqrtf(float(S));
    tensor state(S, S, H_v, -near, near), trace(size, 1, 1, -near, near), q(S, H_k, n_tokens, -near, near),
        k(S, H_k, n_tokens, -near, near), v(S, H_v, n_tokens, -1, 1), g(G, H_v, n_tokens, -0.5f, 0), beta(1, H_v, n_tokens, 0, 1),
        out(S, H_v, n_tokens, 0, 0);
    for (int64_t i = n_trace*(H_v*S + 2*H_k*S); i < size; ++i) {
        trace.floats[i] = -fabsf(trace.floats[i]); // gates
    }
    int32_t counts[] = { n_replay, 1 };
    ggml_tensor replay = {};
    replay.data = counts;
    ggml_tensor * sources[] = { &state, &trace, &replay, &q, &k, &v, &g, &beta };
    std::copy(std::begin(sources), std::end(sources), out.src);
    out.op_params[0] = (int32_t) n_trace;

    std::vector<reference> heads;
    const float * old_u = trace.floats.data();
    const float * old_k = old_u + n_trace*(H_v*S + H_k*S); // the second half
    const float * old_g = old_u + n_trace*(H_v*S + 2*H_k*S + H_v*G);
    for (int64_t h = 0; h < H_v; ++h) {
        const float * first = state.floats.data() + h*S*S;
        heads.push_back({ S, G, std::vector<double>(first, first + S*S) });
        for (int64_t t = 0; t < n_replay; ++t) {
            const float * u = old_u + (t*H_v + h)*S;
            heads[h].decay(old_g + (t*H_v + h)*G);
            heads[h].add(old_k + (t*H_k + h % H_k)*S, std::vector<double>(u, u + S).data());
        }
    }

    std::vector<float> work(ggml_gated_delta_net_trace_work_size(&out) / sizeof(float));
    ggml_compute_params params = {};
    params.nth   = 1;
    params.wdata = work.data();
    params.wsize = work.size()*sizeof(float);
    ggml_compute_forward_gated_delta_net_trace(&params, &out);

    double worst = 0;
    const auto compare = [&](double wanted, float got) { worst = std::max(worst, fabs(wanted - got)); };
    const int64_t n_commit = std::max<int64_t>(0, n_tokens - n_trace);
    for (int64_t h = 0; h < H_v; ++h) {
        reference & head = heads[h];
        const auto compare_state = [&] {
            for (int64_t i = 0; i < S*S; ++i) {
                compare(head.state[i], state.floats[h*S*S + i]);
            }
        };
        for (int64_t t = 0; t < n_tokens; ++t) {
            if (t == n_commit) {
                compare_state();
            }
            const float * kt = k.floats.data() + (t*H_k + h % H_k)*S;
            const float * qt = q.floats.data() + (t*H_k + h % H_k)*S;
            const int64_t at = t*H_v + h;
            head.decay(g.floats.data() + at*G);
            std::vector<double> u(S);
            for (int64_t j = 0; j < S; ++j) {
                u[j] = beta.floats[at]*(v.floats[at*S + j] - head.dot(j, kt));
            }
            head.add(kt, u.data());
            for (int64_t j = 0; j < S; ++j) {
                compare(head.dot(j, qt)/sqrt(double(S)), out.floats[at*S + j]);
                if (t >= n_commit) {
                    compare(u[j], trace.floats[((t - n_commit)*H_v + h)*S + j]);
                }
            }
        }
    }
    return worst;
}

int main(int argc, char ** argv) {
    if (argc != 2 || atoi(argv[1]) != VL) {
        printf("vectors of %d floats\n", VL);
        return 1;
    }
    double worst = 0;
    for (const int64_t S : { 16, 32, 64, 128 }) {
        for (const int64_t n_tokens : { 1, 15, 16, 60 }) {
            for (const int32_t n_replay : { 0, 7, 15 }) {
                worst = std::max({ worst, run(S, 1, 2, 1, n_tokens, n_replay), run(S, 1, 2, S, n_tokens, n_replay) });
            }
        }
    }
    printf("largest difference %g\n", worst);
    return worst < 1e-5 ? 0 : 1;
}
