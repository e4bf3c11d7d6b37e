// What a course's judge wants of a program's run, by a number in its environment. Every judged run
// has one, so that its presence tells a program nothing.
#pragma once

#include <stdlib.h>

namespace cudalab {

enum class JudgedRun { AS_IT_IS, WITHOUT_KERNELS, WITH_OTHER_DATA };

inline JudgedRun judged_run() {
    static const JudgedRun wanted = [] {
        const char* number = getenv("CUDALAB_RUN");
        if (!number) return JudgedRun::AS_IT_IS;
        const unsigned long long mixed = strtoull(number, nullptr, 16) * 0x9e3779b97f4a7c15ull;
        unsetenv("CUDALAB_RUN");
        switch (mixed >> 62) {  // submit/program.py draws it
            case 2:
                return JudgedRun::WITHOUT_KERNELS;
            case 3:
                return JudgedRun::WITH_OTHER_DATA;
            default:
                return JudgedRun::AS_IT_IS;
        }
    }();
    return wanted;
}

}  // namespace cudalab
