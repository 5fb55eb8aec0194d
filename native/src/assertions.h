// ggml ends the process where something does not hold that it takes for granted. While one of these lives, that is an
// exception on its thread instead: a file that is wrong is no reason to take everything else along. Not for passes, whose
// threads no exception may leave.

#pragma once

class slip_assertions {
public:
    slip_assertions();
    ~slip_assertions();
    slip_assertions(const slip_assertions &) = delete;
    slip_assertions & operator=(const slip_assertions &) = delete;

    // Whether something did not hold on this thread since the last call. llama.cpp tells of some exceptions only by what it
    // does not give back.
    static bool take_failed();
};
