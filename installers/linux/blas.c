// What NumPy's wheel asks of BLAS, in place of OpenBLAS, which is 28 MB and of which the app calls one dot product.
// Names and arguments are those of the library in NumPy's wheel (scipy-openblas64): CBLAS with integers of 64 bits.
// http://www.netlib.org/blas/blast-forum/cblas.tgz has the reference that tells what each does.

#include <complex.h>
#include <stdint.h>

enum { ROWS = 101, COLUMNS = 102, AS_IT_IS = 111, CONJUGATED = 113, UPPER = 121 };

#define SAME(x) (x)

// Where a vector begins that is walked through backwards.
static int64_t first(int64_t n, int64_t step) {
    return step < 0 ? (1 - n) * step : 0;
}

// sum x[i] * y[i]; in eight parts, so that the compiler may add several at once
#define DOT(T, CONJ)                                                                                    \
    T     part[8] = { 0 };                                                                              \
    const T * x = x_, * y = y_;                                                                         \
    if (incx == 1 && incy == 1) {                                                                       \
        int64_t i = 0;                                                                                  \
        for (; i + 8 <= n; i += 8) {                                                                    \
            for (int k = 0; k < 8; ++k) {                                                               \
                part[k] += CONJ(x[i + k]) * y[i + k];                                                   \
            }                                                                                           \
        }                                                                                               \
        for (; i < n; ++i) {                                                                            \
            part[0] += CONJ(x[i]) * y[i];                                                               \
        }                                                                                               \
    } else {                                                                                            \
        x += first(n, incx);                                                                            \
        y += first(n, incy);                                                                            \
        for (int64_t i = 0; i < n; ++i) {                                                               \
            part[i % 8] += CONJ(x[i * incx]) * y[i * incy];                                             \
        }                                                                                               \
    }                                                                                                   \
    const T sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]))

#define DOT_REAL(P, T)                                                                                  \
    T scipy_cblas_##P##dot64_(int64_t n, const T * x_, int64_t incx, const T * y_, int64_t incy) {      \
        DOT(T, SAME);                                                                                   \
        return sum;                                                                                     \
    }

#define DOT_COMPLEX(P, T, KIND, CONJ)                                                                   \
    void scipy_cblas_##P##dot##KIND##_sub64_(                                                           \
        int64_t n, const void * x_, int64_t incx, const void * y_, int64_t incy, void * result) {       \
        DOT(T, CONJ);                                                                                   \
        *(T *) result = sum;                                                                            \
    }

// y += alpha * x
#define AXPY(P, T, SCALAR, VALUE)                                                                       \
    void scipy_cblas_##P##axpy64_(                                                                      \
        int64_t n, SCALAR alpha, const void * x_, int64_t incx, void * y_, int64_t incy) {              \
        const T * x = (const T *) x_ + first(n, incx);                                                  \
        T       * y = (T *) y_ + first(n, incy);                                                        \
        for (int64_t i = 0; i < n; ++i) {                                                               \
            y[i * incy] += VALUE(T, alpha) * x[i * incx];                                               \
        }                                                                                               \
    }

// An element of a matrix that may be transposed, by its steps: down a column, along a row.
#define STEPS(TRANS, LD, DOWN, ALONG)                                                                   \
    const int64_t DOWN  = (order == ROWS) == (TRANS == AS_IT_IS) ? LD : 1;                              \
    const int64_t ALONG = (order == ROWS) == (TRANS == AS_IT_IS) ? 1 : LD

// y = alpha * op(a) x + beta * y; a has m rows and n columns before op
#define GEMV(P, T, SCALAR, VALUE, CONJ)                                                                 \
    void scipy_cblas_##P##gemv64_(                                                                      \
        int order, int trans, int64_t m, int64_t n, SCALAR alpha, const void * a_, int64_t lda,         \
        const void * x_, int64_t incx, SCALAR beta, void * y_, int64_t incy) {                          \
        STEPS(trans, lda, down, along);                                                                 \
        const int64_t rows    = trans == AS_IT_IS ? m : n;                                              \
        const int64_t columns = trans == AS_IT_IS ? n : m;                                              \
        const T * a = a_, * x = (const T *) x_ + first(columns, incx);                                  \
        T       * y = (T *) y_ + first(rows, incy);                                                     \
        for (int64_t i = 0; i < rows; ++i) {                                                            \
            T sum = 0;                                                                                  \
            for (int64_t k = 0; k < columns; ++k) {                                                     \
                const T value = a[i * down + k * along];                                                \
                sum += (trans == CONJUGATED ? CONJ(value) : value) * x[k * incx];                       \
            }                                                                                           \
            sum *= VALUE(T, alpha);                                                                     \
            y[i * incy] = VALUE(T, beta) == 0 ? sum : sum + VALUE(T, beta) * y[i * incy];               \
        }                                                                                               \
    }

// c = alpha * op(a) op(b) + beta * c; of rows and columns after op, `WHERE` tells which of them
#define PRODUCT(T, VALUE, CONJ, N, K, TRANSB, LDB, B, WHERE)                                            \
    STEPS(transa, lda, adown, aalong);                                                                  \
    STEPS(TRANSB, LDB, bdown, balong);                                                                  \
    const int64_t cdown = order == ROWS ? ldc : 1, calong = order == ROWS ? 1 : ldc;                    \
    const T * a = a_, * b = B;                                                                          \
    T       * c = c_;                                                                                   \
    for (int64_t i = 0; i < m; ++i) {                                                                   \
        for (int64_t j = 0; j < N; ++j) {                                                               \
            if (WHERE) {                                                                                \
                T * to = c + i * cdown + j * calong;                                                    \
                *to    = VALUE(T, beta) == 0 ? 0 : VALUE(T, beta) * *to;                                \
            }                                                                                           \
        }                                                                                               \
        for (int64_t k = 0; k < K; ++k) {                                                               \
            T left = a[i * adown + k * aalong];                                                         \
            left   = VALUE(T, alpha) * (transa == CONJUGATED ? CONJ(left) : left);                      \
            for (int64_t j = 0; j < N; ++j) {                                                           \
                if (WHERE) {                                                                            \
                    const T right = b[k * bdown + j * balong];                                          \
                    c[i * cdown + j * calong] += left * (TRANSB == CONJUGATED ? CONJ(right) : right);   \
                }                                                                                       \
            }                                                                                           \
        }                                                                                               \
    }

#define GEMM(P, T, SCALAR, VALUE, CONJ)                                                                 \
    void scipy_cblas_##P##gemm64_(                                                                      \
        int order, int transa, int transb, int64_t m, int64_t n, int64_t kk, SCALAR alpha,              \
        const void * a_, int64_t lda, const void * b_, int64_t ldb, SCALAR beta, void * c_, int64_t ldc) { \
        PRODUCT(T, VALUE, CONJ, n, kk, transb, ldb, b_, 1)                                              \
    }

// c = alpha * op(a) op(a)^T + beta * c, one triangle of it
#define SYRK(P, T, SCALAR, VALUE)                                                                       \
    void scipy_cblas_##P##syrk64_(                                                                      \
        int order, int uplo, int transa, int64_t m, int64_t kk, SCALAR alpha, const void * a_,          \
        int64_t lda, SCALAR beta, void * c_, int64_t ldc) {                                             \
        const int other = transa == AS_IT_IS ? AS_IT_IS + 1 : AS_IT_IS;                                 \
        PRODUCT(T, VALUE, SAME, m, kk, other, lda, a_, uplo == UPPER ? j >= i : j <= i)                 \
    }

#define BY_VALUE(T, x)   (x)
#define BY_POINTER(T, x) (*(const T *) (x))

#define ALL(P, T, SCALAR, VALUE, CONJ) \
    AXPY(P, T, SCALAR, VALUE)          \
    GEMV(P, T, SCALAR, VALUE, CONJ)    \
    GEMM(P, T, SCALAR, VALUE, CONJ)    \
    SYRK(P, T, SCALAR, VALUE)

typedef float  _Complex complex_float;
typedef double _Complex complex_double;

DOT_REAL(s, float)
DOT_REAL(d, double)
DOT_COMPLEX(c, complex_float,  u, SAME)
DOT_COMPLEX(c, complex_float,  c, conjf)
DOT_COMPLEX(z, complex_double, u, SAME)
DOT_COMPLEX(z, complex_double, c, conj)
ALL(s, float,          float,        BY_VALUE,   SAME)
ALL(d, double,         double,       BY_VALUE,   SAME)
ALL(c, complex_float,  const void *, BY_POINTER, conjf)
ALL(z, complex_double, const void *, BY_POINTER, conj)
