// Bounds from below of distances, from the rough copy of points. Part of kernels.cpp, and compiled with it once per
// instruction set.
#pragma once
#include <cmath>
#include <limits>

#include "lanes.hpp"
#include "rough.hpp"

namespace dc2 {
namespace DC2_ARCH {

// Rounds a row; returns at least the distance that this moves it.
template <class T>
static float round_row(const T* x, const RoughGrid& grid, int8_t* out) {
    constexpr double kRound = 0x1.8p52;  // added and subtracted, it rounds to the nearest whole number
    const double per_unit = 1 / grid.unit;
    double squares[kLanes] = {0};
    const auto round_one = [&](int64_t j, int64_t lane) {
        const double value = double(x[j]), off = value - grid.middle[j];
        double steps = off * per_unit;
        steps = steps < 127 ? steps : 127;  // NaN too
        steps = steps > -127 ? steps : -127;
        steps = (steps + kRound) - kRound;
        const double moved =
            std::fabs(off - steps * grid.unit) + 0x1p-50 * (std::fabs(value) + std::fabs(grid.middle[j]));
        squares[lane] += moved * moved;
        out[j] = int8_t(int32_t(steps));
    };
    const int64_t full = grid.width / kLanes * kLanes;
    for (int64_t j = 0; j < full; j += kLanes)
        for (int64_t lane = 0; lane < kLanes; ++lane) round_one(j + lane, lane);
    for (int64_t j = full; j < grid.width; ++j) round_one(j, 0);
    for (int64_t j = grid.width; j < grid.step; ++j) out[j] = 0;
    double sum = 0;
    for (int64_t lane = 0; lane < kLanes; ++lane) sum += squares[lane];
    return float(std::sqrt(sum)) * 1.00001f;
}

// Squared distances of a rounded row to four others, in units.
static inline void four_rough_squares(const int16_t* x, const int8_t* const* points, int64_t step, int32_t* out) {
    const int8_t *p = points[0], *q = points[1], *r = points[2], *s = points[3];
    int32_t a = 0, b = 0, c = 0, d = 0;
    for (int64_t j = 0; j < step / kRoughStep * kRoughStep; ++j) {
        const int16_t to_p = x[j] - p[j], to_q = x[j] - q[j], to_r = x[j] - r[j], to_s = x[j] - s[j];
        a += to_p * to_p;
        b += to_q * to_q;
        c += to_r * to_r;
        d += to_s * to_s;
    }
    out[0] = a, out[1] = b, out[2] = c, out[3] = d;
}

// Tells which points are certainly farther from a row than some distance.
template <class T>
class Bounds {
public:
    explicit Bounds(const Rough& rough)
        : rough_(rough),
          slack_(1 + (padded_width(rough.grid.width) / kLanes + 16) * std::numeric_limits<T>::epsilon()),
          tiny_(std::sqrt(rough.grid.width * std::numeric_limits<T>::min())),
          per_unit_(rough.rows == nullptr ? 0 : float(1 / rough.grid.unit)),
          x_(rough.rows == nullptr ? 0 : rough.grid.step),
          rounded_(rough.rows == nullptr ? 0 : rough.grid.step) {}

    bool known() const { return rough_.rows != nullptr; }

    void begin(const T* x) {
        error_ = round_row(x, rough_.grid, rounded_.data());
        widen(rounded_.data());
    }

    void begin_at(int32_t id) {
        error_ = rough_.errors[id];
        widen(rough_.rows + id * rough_.grid.step);
    }

    // The squared distance from which on points are too far, with all that rounding may have changed.
    void set_worst(T worst) {
        reach_ = float((std::sqrt(double(worst)) * slack_ + tiny_ + double(error_)) * 1.00001) * per_unit_;
    }

    bool too_far(int32_t id, int32_t square) const {
        const float limit = reach_ + rough_.errors[id] * per_unit_;
        return float(square) > limit * limit * 1.00001f;
    }

    void prefetch_row(int32_t id) const { prefetch(row(id), rough_.grid.step); }

    void measure(const int32_t* ids, int64_t count, int32_t* squares) {
        constexpr int64_t kAhead = 8;
        for (int64_t i = 0; i < count && i < kAhead; ++i) prefetch_row(ids[i]);
        for (int64_t i = 0; i < count; i += 4) {
            for (int64_t j = i + kAhead; j < i + kAhead + 4 && j < count; ++j) prefetch_row(ids[j]);
            const int8_t* points[4];
            for (int64_t j = 0; j < 4; ++j) points[j] = row(ids[i + j < count ? i + j : i]);
            int32_t four[4];
            four_rough_squares(x_.data(), points, rough_.grid.step, four);
            for (int64_t j = 0; j < 4 && i + j < count; ++j) squares[i + j] = four[j];
        }
    }

private:
    const int8_t* row(int32_t id) const { return rough_.rows + id * rough_.grid.step; }

    void widen(const int8_t* from) {
        for (int64_t j = 0; j < rough_.grid.step; ++j) x_.data()[j] = from[j];
    }

    const Rough rough_;
    const double slack_, tiny_;
    const float per_unit_;
    LineBuffer<int16_t> x_;
    LineBuffer<int8_t> rounded_;
    float error_ = 0, reach_ = 0;
};

// Candidates of a search, with their rough distances.
struct Candidates {
    int32_t* ids;
    int32_t* squares;
    int64_t count;

    void swap(int64_t i, int64_t j) {
        const int32_t id = ids[i], square = squares[i];
        ids[i] = ids[j], squares[i] = squares[j];
        ids[j] = id, squares[j] = square;
    }

    // Puts the `few` with the smallest rough distances in front, in any order.
    void put_near_first(int64_t few) {
        int64_t low = 0, high = count - 1;
        while (low < high) {
            const int32_t middle = squares[(low + high) / 2];
            int64_t i = low, j = high;
            while (i <= j) {
                while (squares[i] < middle) ++i;
                while (squares[j] > middle) --j;
                if (i <= j) swap(i++, j--);
            }
            if (few <= j + 1) {
                high = j;
            } else if (few > i) {
                low = i;
            } else {
                return;
            }
        }
    }

    // Drops those that are too far.
    template <class T>
    void keep_near(const Bounds<T>& bounds, int64_t from) {
        int64_t kept = from;
        for (int64_t i = from; i < count; ++i) {
            ids[kept] = ids[i];
            squares[kept] = squares[i];
            kept += !bounds.too_far(ids[i], squares[i]);
        }
        count = kept;
    }
};

// Offers candidates to a search that holds `few`: the roughly nearest ones first, then those that may still be near
// enough. `worst` follows the search; `offer` measures and offers some ids.
template <class T, class Offer>
static inline void offer_near(Bounds<T>& bounds, Candidates found, int64_t few, const T& worst, const Offer& offer) {
    const T infinity = std::numeric_limits<T>::infinity();
    bounds.measure(found.ids, found.count, found.squares);
    if (worst < infinity) {
        bounds.set_worst(worst);
        found.keep_near(bounds, 0);
    }
    const int64_t first = few < found.count ? few : found.count;
    if (first < found.count) found.put_near_first(first);
    offer(found.ids, first);
    if (first == found.count) return;
    if (worst < infinity) {
        bounds.set_worst(worst);
        found.keep_near(bounds, first);
    }
    offer(found.ids + first, found.count - first);
}

}  // namespace DC2_ARCH
}  // namespace dc2
