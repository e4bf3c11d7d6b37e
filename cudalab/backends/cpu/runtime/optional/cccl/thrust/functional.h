// With what Thrust has removed since CUDA 13, and programs of courses use.
#pragma once

#include_next <thrust/functional.h>

THRUST_NAMESPACE_BEGIN
template <class Argument, class Result>
struct unary_function {
    typedef Argument argument_type;
    typedef Result result_type;
};
template <class First, class Second, class Result>
struct binary_function {
    typedef First first_argument_type;
    typedef Second second_argument_type;
    typedef Result result_type;
};
template <class T>
struct identity {
    typedef T argument_type;
    typedef T result_type;
    const T& operator()(const T& value) const { return value; }
};
THRUST_NAMESPACE_END
