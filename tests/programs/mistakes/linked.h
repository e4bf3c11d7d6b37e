#pragma once
int steps;  //~ steps is defined a second time; first at linked.h:2
inline int twice(int x) { return 2 * x; }
