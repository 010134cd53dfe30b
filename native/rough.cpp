#include "rough.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace dc2 {

namespace {

constexpr int64_t kForMiddle = 1024, kForUnit = 256;  // rows that the grid is chosen by
constexpr int kHalvings = 8;                          // of the unit that holds all of them
constexpr double kLeastUnit = 1e-30, kLargestUnit = 1e30;

}  // namespace

template <class T>
RoughCopy::RoughCopy(const T* points, int64_t rows, int64_t width, int64_t row_step) {
    count_ = rows;
    width_ = width;
    if (padded_width(width) <= kWidestNarrow || width > kMostRoughWidth || rows < 2) return;
    step_ = (width + kRoughStep - 1) / kRoughStep * kRoughStep;
    middle_ = LineBuffer<double>(width);
    const int64_t every = (rows + kForMiddle - 1) / kForMiddle, count = (rows + every - 1) / every;
    for (int64_t i = 0; i < rows; i += every)
        for (int64_t j = 0; j < width; ++j) middle_.data()[j] += double(points[i * row_step + j]) / double(count);
    const int64_t few_every = (rows + kForUnit - 1) / kForUnit;
    double largest = 0;
    for (int64_t i = 0; i < rows; i += few_every)
        for (int64_t j = 0; j < width; ++j)
            largest = std::max(largest, std::fabs(double(points[i * row_step + j]) - middle_.data()[j]));
    if (!(largest > kLeastUnit * 65536 && largest < kLargestUnit)) return;
    // A smaller unit cuts off a few far values and rounds all the others less.
    const Kernels<T>& here = kernels<T>();
    std::vector<int8_t> rounded(step_);
    double best = 0;
    double unit = std::ldexp(1.0, std::ilogb(largest / 127) + 1);
    for (int halving = 0; halving < kHalvings; ++halving, unit /= 2) {
        const RoughGrid grid = {middle_.data(), unit, width, step_};
        double moved = 0;
        for (int64_t i = 0; i < rows; i += few_every)
            moved += here.round_row(points + i * row_step, grid, rounded.data());
        if (halving == 0 || moved < best) {
            best = moved;
            unit_ = unit;
        }
    }
    rows_ = LineBuffer<int8_t>(rows * step_);
    errors_ = LineBuffer<float>(rows);
    const RoughGrid grid = {middle_.data(), unit_, width, step_};
    for (int64_t i = 0; i < rows; ++i)
        errors_.data()[i] = here.round_row(points + i * row_step, grid, rows_.data() + i * step_);
}

template RoughCopy::RoughCopy(const float*, int64_t, int64_t, int64_t);
template RoughCopy::RoughCopy(const double*, int64_t, int64_t, int64_t);

}  // namespace dc2
