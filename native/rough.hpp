// Points rounded to eight bits, a quarter of the memory: bounds from below of distances, which save most exact ones.
// |x - y| is at least unit * |round(x) - round(y)| minus what rounding moved the two. Bounds change no result.
#pragma once
#include <cstdint>

#include "kernels.hpp"

namespace dc2 {

constexpr int64_t kRoughStep = 32;         // rows are filled up with zeros to a multiple
constexpr int64_t kMostRoughWidth = 32768; // a sum of so many squares of differences fits into 32 bits

// What one row is rounded to: round((x - middle) / unit), as far as eight bits go.
struct RoughGrid {
    const double* middle;  // (width)
    double unit;           // a power of two; 0 if there is no rough copy
    int64_t width, step;
};

struct Rough {
    RoughGrid grid;
    const int8_t* rows;   // (rows, step)
    const float* errors;  // (rows): at least the distance that rounding moved each row
};

// The rough copy of points, or none (unit 0) where it would not help: narrow rows, or values out of range.
class RoughCopy {
public:
    RoughCopy() = default;
    template <class T>
    RoughCopy(const T* points, int64_t rows, int64_t width, int64_t row_step);
    Rough view() {
        return {{middle_.data(), unit_, width_, step_}, unit_ > 0 ? rows_.data() : nullptr, errors_.data()};
    }

    bool fits(int64_t rows, int64_t width) const { return count_ == rows && width_ == width; }

private:
    LineBuffer<double> middle_;
    LineBuffer<int8_t> rows_;
    LineBuffer<float> errors_;
    double unit_ = 0;
    int64_t count_ = 0, width_ = 0, step_ = 0;
};

}  // namespace dc2
