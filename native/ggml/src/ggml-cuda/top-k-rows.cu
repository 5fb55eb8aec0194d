#include "top-k-rows.cuh"

#include <cstdint>

// Blocks of threads take chunks of a row and leave the k largest of each, another block the k largest
// of those. What is compared are keys: the value, then the place, so no two are equal.
//
// The k-th largest of what each thread has found to be its largest is a bound: k values at least are not
// below it, and only k threads have such values. So few are left to be ranked, each by counting the
// larger ones.

static constexpr int TOP_K_THREADS = 256;
static constexpr int TOP_K_VALUES  = 32; // of a thread
static constexpr int TOP_K_CHUNK   = TOP_K_THREADS*TOP_K_VALUES;
static constexpr int TOP_K_MAX     = 64;

using top_k_key = unsigned long long; // 0: none

static __device__ __forceinline__ top_k_key top_k_key_of(const float value, const int i) {
    const uint32_t bits    = __float_as_uint(value + 0.0f); // -0 equals 0
    const uint32_t ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return ((top_k_key) ordered << 32) | (uint32_t) ~i;
}

// Gives the k largest of the keys of a block to `put(rank, key)`. Each thread has up to TOP_K_VALUES keys, got by
// `key(j)`; `largest` is the largest of them.
template <typename Key, typename Put>
static __device__ __forceinline__ void top_k_of_block(const top_k_key largest, const int k, const Key & key, const Put & put) {
    __shared__ top_k_key maxima[TOP_K_THREADS];
    __shared__ top_k_key left[TOP_K_MAX*TOP_K_VALUES];
    __shared__ top_k_key bound;
    __shared__ int       n_left;

    maxima[threadIdx.x] = largest;
    if (threadIdx.x == 0) {
        bound  = 1; // fewer than k threads have a key: all keys are left
        n_left = 0;
    }
    __syncthreads();

    int rank = 0;
#pragma unroll 8
    for (int i = 0; i < TOP_K_THREADS; ++i) {
        rank += maxima[i] > largest;
    }
    if (rank == k - 1 && largest != 0) {
        bound = largest;
    }
    __syncthreads();

    if (largest >= bound) {
#pragma unroll
        for (int j = 0; j < TOP_K_VALUES; ++j) {
            const top_k_key x = key(j);
            if (x >= bound) {
                left[atomicAdd(&n_left, 1)] = x;
            }
        }
    }
    __syncthreads();

    for (int i = threadIdx.x; i < n_left; i += TOP_K_THREADS) {
        const top_k_key x = left[i];
        int larger = 0;
        for (int j = 0; j < n_left; ++j) {
            larger += left[j] > x;
        }
        if (larger < k) {
            put(larger, x);
        }
    }
}

static __global__ void __launch_bounds__(TOP_K_THREADS)
top_k_of_chunks(const float * x, top_k_key * found, const int n, const int k) {
    const int chunk = blockIdx.x;
    const int row   = blockIdx.y;
    const int first = chunk*TOP_K_CHUNK + threadIdx.x;

    ggml_cuda_pdl_lc();
    ggml_cuda_pdl_sync();

    x     += (int64_t) row*n;
    found += ((int64_t) row*gridDim.x + chunk)*k;

    float v[TOP_K_VALUES];
#pragma unroll
    for (int j = 0; j < TOP_K_VALUES; ++j) {
        const int i = first + j*TOP_K_THREADS;
        v[j] = i < n ? x[i] : 0.0f;
    }
    const auto key = [&](const int j) -> top_k_key {
        const int i = first + j*TOP_K_THREADS;
        return i < n ? top_k_key_of(v[j], i) : 0;
    };

    top_k_key largest = 0;
#pragma unroll
    for (int j = 0; j < TOP_K_VALUES; ++j) {
        largest = max(largest, key(j));
    }
    // a chunk at the end may hold fewer than k
    for (int i = min(TOP_K_CHUNK, n - chunk*TOP_K_CHUNK) + threadIdx.x; i < k; i += TOP_K_THREADS) {
        found[i] = 0;
    }
    top_k_of_block(largest, k, key, [&](const int rank, const top_k_key x) { found[rank] = x; });
}

static __global__ void __launch_bounds__(TOP_K_THREADS)
top_k_of_found(const top_k_key * found, int * dst, const int n, const int k) {
    const int row = blockIdx.x;

    ggml_cuda_pdl_lc();
    ggml_cuda_pdl_sync();

    found += (int64_t) row*n;
    const auto key = [&](const int j) -> top_k_key {
        const int i = threadIdx.x + j*TOP_K_THREADS;
        return i < n ? found[i] : 0;
    };

    top_k_key largest = 0;
#pragma unroll
    for (int j = 0; j < TOP_K_VALUES; ++j) {
        largest = max(largest, key(j));
    }
    top_k_of_block(largest, k, key, [&](const int rank, const top_k_key x) { dst[row*k + rank] = (int) ~(uint32_t) x; });
}

bool ggml_cuda_top_k_rows(ggml_backend_cuda_context & ctx, ggml_tensor * dst) {
    const ggml_tensor * src = dst->src[0];

    const int64_t n        = src->ne[0];
    const int64_t n_rows   = ggml_nrows(src);
    const int64_t k        = dst->ne[0];
    const int64_t n_chunks = (n + TOP_K_CHUNK - 1)/TOP_K_CHUNK;
    if (k > TOP_K_MAX || n_chunks*k > TOP_K_CHUNK || n_rows > 65535) {
        return false;
    }

    ggml_cuda_pool_alloc<top_k_key> found(ctx.pool(), n_rows*n_chunks*k);

    const dim3 threads(TOP_K_THREADS, 1, 1);
    const ggml_cuda_kernel_launch_params chunks(dim3(n_chunks, n_rows, 1), threads, 0, ctx.stream());
    ggml_cuda_kernel_launch(top_k_of_chunks, chunks, (const float *) src->data, found.get(), (int) n, (int) k);

    const ggml_cuda_kernel_launch_params rows(dim3(n_rows, 1, 1), threads, 0, ctx.stream());
    ggml_cuda_kernel_launch(top_k_of_found, rows, (const top_k_key *) found.get(), (int *) dst->data, (int) (n_chunks*k), (int) k);
    return true;
}
