// A graph that is computed on this thread. For the host alone, without CUDA: a test looks at it on any machine.
//
// What finds no room within one, for a pool, a captured graph or code that is loaded when it is first used, is an
// exception that ends the graph with a status; elsewhere nobody would catch it, and it ends the process as other errors do.
//
// A context that ends destroys handles, which must not happen while any thread captures a stream: it waits until none
// does. However a graph ends, its capture is over then.

#pragma once

#include <condition_variable>
#include <mutex>

class ggml_cuda_graph_scope {
public:
    ggml_cuda_graph_scope() : outer(innermost()) {
        innermost() = this;
    }

    ~ggml_cuda_graph_scope() {
        innermost() = outer;
        if (capturing) {
            std::lock_guard<std::mutex> lock(captures().mutex);
            if (--captures().n == 0) {
                captures().none.notify_all();
            }
        }
    }

    ggml_cuda_graph_scope(const ggml_cuda_graph_scope &) = delete;
    ggml_cuda_graph_scope & operator=(const ggml_cuda_graph_scope &) = delete;

    // Whether this thread computes a graph.
    static bool active() {
        return innermost() != nullptr;
    }

    // Until the graph ends. Once in a graph.
    void capture() {
        std::lock_guard<std::mutex> lock(captures().mutex);
        captures().n++;
        capturing = true;
    }

    // Waits until no thread captures. None begins as long as the lock is held.
    static std::unique_lock<std::mutex> no_captures() {
        std::unique_lock<std::mutex> lock(captures().mutex);
        captures().none.wait(lock, [] { return captures().n == 0; });
        return lock;
    }

private:
    struct counted {
        std::mutex              mutex;
        std::condition_variable none;
        int                     n = 0;
    };

    static counted & captures() {
        static counted all;
        return all;
    }

    static ggml_cuda_graph_scope *& innermost() {
        static thread_local ggml_cuda_graph_scope * scope = nullptr;
        return scope;
    }

    ggml_cuda_graph_scope * outer;
    bool capturing = false;
};
