#pragma once
#include <cstdint>

namespace dc2 {

// Several threads may add to the same sums. Each takes the count of a signature before it adds a row to the sums of this
// signature, and gives the new count back afterwards; meanwhile others wait.
int64_t take_count(int64_t* count);
void give_count(int64_t* count, int64_t value);

}  // namespace dc2
