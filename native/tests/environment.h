// An environment variable of this process; nullptr takes it away.

#pragma once

#include <cstdlib>

inline void set_environment(const char * name, const char * value) {
#ifdef _WIN32
    _putenv_s(name, value ? value : "");
#else
    value ? setenv(name, value, 1) : unsetenv(name);
#endif
}
