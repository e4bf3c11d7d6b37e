#include "linked.h"

int more() { return twice(steps); }
