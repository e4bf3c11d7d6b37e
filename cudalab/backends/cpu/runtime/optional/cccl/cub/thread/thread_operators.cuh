// With the operators that CUB has removed since CUDA 13, and programs of courses use.
#pragma once

#include_next <cub/thread/thread_operators.cuh>

CUB_NAMESPACE_BEGIN
#define CUDALAB_OPERATOR(name, expression)                                      \
    struct name {                                                               \
        template <class A, class B>                                             \
        auto operator()(const A& a, const B& b) const -> decltype(expression) { \
            return expression;                                                  \
        }                                                                       \
    };
CUDALAB_OPERATOR(Sum, a + b)
CUDALAB_OPERATOR(Difference, a - b)
CUDALAB_OPERATOR(Max, a < b ? b : a)
CUDALAB_OPERATOR(Min, b < a ? b : a)
CUDALAB_OPERATOR(Equality, a == b)
CUDALAB_OPERATOR(Inequality, a != b)
#undef CUDALAB_OPERATOR
CUB_NAMESPACE_END
