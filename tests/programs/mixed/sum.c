#include "parts.h"

int sum_in_c(const int *class, int n) {  // no C++
    int *new = (void *)class, sum = 0;
    while (n--) sum += *new++;
    return sum;
}
