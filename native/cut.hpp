// Where one node of a tree is cut: its direction, the projections of its rows, and the threshold.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "grow.hpp"
#include "threads.hpp"

namespace dc2 {

constexpr int64_t kSharpenRows = 512;
constexpr double kDirectionGrid = 1048576.0;  // 2^20
constexpr double kClearlyMore = 1.0 + 0x1p-20;
constexpr int64_t kManyNumbers = 1 << 20;  // from here on several threads for one node pay off
constexpr uint64_t kCutStream = 0xD1B54A32D192ED03ull;

inline double draw_uniform(uint64_t seed, int64_t draw) {
    return double(hash_row(seed ^ kCutStream, uint64_t(draw)) >> 11) * 0x1p-53;
}

struct Node {
    double size;
    int64_t created, begin, end;  // its rows are order[begin..end)
    int32_t parent;
    int side;
};

// What every cut needs: the rows, their weights, and the order in which nodes hold them.
template <class T>
struct Held {
    Matrix<T> X;
    const double* weights;
    const GrowOptions& options;
    const Kernels<T>& loops;
    int64_t padded;
    std::vector<uint32_t> order;

    double weight(int64_t i) const { return weights == nullptr ? 1.0 : weights[order[i]]; }
};

// Places the cut of one node; several may work at once, on different nodes.
template <class T>
class Cutter {
public:
    Cutter(const Held<T>& held, int64_t split, int64_t threads)
        : held_(held), X_(held.X), weights_(held.weights), options_(held.options), loops_(held.loops),
          padded_(held.padded), order_(held.order), split_(split), threads_(threads) {}

    std::vector<T> take_direction() { return std::move(direction_); }
    std::vector<T> take_projection() { return std::move(projection_); }
    T threshold() const { return threshold_; }

    // Sets direction_, projection_[0..count) and threshold_; false if the node's rows are all equal.
    bool place_cut(const Node& node) {
        const int64_t count = node.end - node.begin;
        projection_.resize(count);
        best_projection_.resize(count);
        double best_spread = 0;
        std::vector<T> best;
        for (int64_t candidate = 0; candidate < options_.candidates; ++candidate) {
            draw_direction(split_ * options_.candidates + candidate);
            sharpen(node);
            project(node);
            const double spread = options_.candidates > 1 ? spread_of(node) : 0.0;
            if (best.empty() || spread > best_spread * kClearlyMore) {
                best = direction_;
                best_spread = spread;
                if (options_.candidates > 1)
                    std::copy_n(projection_.begin(), count, best_projection_.begin());
            }
        }
        if (options_.candidates > 1) {
            direction_ = best;
            std::copy_n(best_projection_.begin(), count, projection_.begin());
        }
        T low, high;
        loops_.range(projection_.data(), count, &low, &high);
        if (!(low < high)) {
            if (!take_widest_axis(node)) return false;
            project(node);
            loops_.range(projection_.data(), count, &low, &high);
        }
        set_threshold(count, low, high, cut_place(node, low, high));
        return true;
    }

private:
    double weight(int64_t i) const { return held_.weight(i); }

    void project(const Node& node) {
        const int64_t count = node.end - node.begin, pieces = count * X_.width < kManyNumbers ? 1 : threads_;
        in_threads(threads_, pieces, [&](int64_t piece) {
            const int64_t begin = count * piece / pieces, end = count * (piece + 1) / pieces;
            loops_.project(X_, order_.data() + node.begin + begin, end - begin, direction_.data(),
                           projection_.data() + begin);
        });
    }

    // Draws are numbered by splits, so a node that turns out to hold only equal rows uses up none.
    void draw_direction(int64_t draw) {
        const int64_t width = X_.width, words = (width + 3) / 4;
        std::vector<double> v(width);
        uint64_t bits = 0;
        for (int64_t j = 0; j < width; ++j) {
            if (j % 4 == 0) bits = hash_row(options_.seed, uint64_t(draw * words + j / 4));
            v[j] = options_.normal_table[(bits >> (4 + 16 * (j % 4))) & 4095];
        }
        double square = 0;
        for (double entry : v) square += entry * entry;
        const double norm = std::sqrt(square);
        direction_.assign(padded_, T(0));
        for (int64_t j = 0; j < width; ++j) direction_[j] = T(v[j] / norm);
    }

    // v <- C v, normalised, with C the covariance of up to kSharpenRows of the node's rows.
    void sharpen(const Node& node) {
        if (options_.sharpen == 0) return;
        std::vector<uint32_t> rows(order_.begin() + node.begin,
                                   node.size > kSharpenRows ? order_.begin() + node.begin : order_.begin() + node.end);
        std::vector<double> weights;
        if (node.size > kSharpenRows) {
            systematic_rows(node, rows);
            weights.assign(rows.size(), 1.0);
        } else {
            for (int64_t i = node.begin; i < node.end; ++i) weights.push_back(weight(i));
        }
        const int64_t count = int64_t(rows.size());
        std::vector<T> p(count);
        std::vector<double> factor(count), pull(X_.width);
        for (int64_t step = 0; step < options_.sharpen; ++step) {
            loops_.project(X_, rows.data(), count, direction_.data(), p.data());
            double sum = 0, total = 0;
            for (int64_t i = 0; i < count; ++i) {
                factor[i] = double(p[i]) - double(p[0]);
                sum += weights[i] * factor[i];
                total += weights[i];
            }
            const double mean = sum / total;
            for (int64_t i = 0; i < count; ++i) factor[i] = weights[i] * (factor[i] - mean);
            loops_.pull(X_, rows.data(), count, factor.data(), pull.data());
            double square = 0;
            for (double entry : pull) square += entry * entry;
            const double norm = std::sqrt(square);
            if (!(norm > 0 && norm < std::numeric_limits<double>::infinity())) return;
            for (int64_t j = 0; j < X_.width; ++j)
                direction_[j] = T(std::nearbyint(pull[j] / norm * kDirectionGrid) / kDirectionGrid);
        }
    }

    // kSharpenRows rows, evenly spaced in cumulative weight.
    void systematic_rows(const Node& node, std::vector<uint32_t>& rows) const {
        rows.clear();
        const double gap = node.size / kSharpenRows;
        double cumulative = weight(node.begin);
        int64_t i = node.begin;
        for (int64_t k = 0; k < kSharpenRows; ++k) {
            const double target = (double(k) + 0.5) * gap;
            while (cumulative < target && i < node.end - 1) cumulative += weight(++i);
            rows.push_back(order_[i]);
        }
    }

    // Projections as whole steps above their minimum, so their sums are exact.
    double grid_step(T low, T high) const {
        int exponent;
        std::frexp(double(high) - double(low), &exponent);
        return std::ldexp(1.0, std::max(exponent - 27, -1022));
    }

    double mean_steps(const Node& node, T low, double step) const {
        const int64_t count = node.end - node.begin;
        if (weights_ == nullptr) return loops_.sum_steps(projection_.data(), count, low, step) / double(count);
        double sum = 0, total = 0;
        for (int64_t i = 0; i < count; ++i) {
            const double w = weight(node.begin + i);
            sum += w * std::nearbyint((double(projection_[i]) - double(low)) / step);
            total += w;
        }
        return sum / total;
    }

    double spread_of(const Node& node) const {
        const int64_t count = node.end - node.begin;
        T low, high;
        loops_.range(projection_.data(), count, &low, &high);
        if (!(low < high)) return 0.0;
        const double step = grid_step(low, high), mean = mean_steps(node, low, step);
        double sum = 0;
        for (int64_t i = 0; i < count; ++i) {
            const double off = std::nearbyint((double(projection_[i]) - double(low)) / step) - mean;
            sum += weight(node.begin + i) * (off * off);
        }
        return sum * step * step;
    }

    // The smallest projection at which the cumulative weight reaches a share of the total.
    double quantile(const Node& node, double share) {
        const int64_t count = node.end - node.begin;
        if (weights_ == nullptr) {
            const int64_t at = std::min(int64_t(std::ceil(share * double(count))) - 1, count - 1);
            best_projection_.assign(projection_.begin(), projection_.begin() + count);
            std::nth_element(best_projection_.begin(), best_projection_.begin() + at, best_projection_.begin() + count);
            const double found = double(best_projection_[at]);
            return found;
        }
        std::vector<int64_t> sorted(count);
        std::iota(sorted.begin(), sorted.end(), int64_t(0));
        std::stable_sort(sorted.begin(), sorted.end(),
                         [&](int64_t a, int64_t b) { return projection_[a] < projection_[b]; });
        double total = 0;
        for (int64_t i : sorted) total += weight(node.begin + i);
        double cumulative = 0;
        for (int64_t i : sorted) {
            cumulative += weight(node.begin + i);
            if (cumulative >= share * total) return double(projection_[i]);
        }
        return double(projection_[sorted.back()]);
    }

    double cut_place(const Node& node, T low, T high) {
        if (options_.cut == Cut::median) return quantile(node, 0.5);
        if (options_.cut == Cut::mean) {
            const double step = grid_step(low, high);
            return double(low) + mean_steps(node, low, step) * step;
        }
        double from = double(low), to = double(high);
        if (options_.cut == Cut::quantile) {
            from = quantile(node, 0.25);
            to = quantile(node, 0.75);
        }
        return from + draw_uniform(options_.seed, split_) * (to - from);
    }

    // The middle of the gap between projections at the wanted position, so both sides get rows.
    void set_threshold(int64_t count, T minimum, T maximum, double place) {
        const T infinity = std::numeric_limits<T>::infinity();
        T at = T(place);
        if (double(at) > place) at = std::nextafter(at, -infinity);
        at = std::min(std::max(at, minimum), std::nextafter(maximum, -infinity));
        T low = minimum, high = maximum;
        loops_.around(projection_.data(), count, at, &low, &high);
        const T middle = low + (high - low) * T(0.5);
        threshold_ = middle < high ? middle : low;
    }

    bool take_widest_axis(const Node& node) {
        T widest = 0;
        int64_t axis = -1;
        for (int64_t j = 0; j < X_.width; ++j) {
            const T* column = X_.data + j * X_.column_step;
            T low = column[order_[node.begin] * X_.row_step], high = low;
            for (int64_t i = node.begin; i < node.end; ++i) {
                const T x = column[order_[i] * X_.row_step];
                low = std::min(low, x);
                high = std::max(high, x);
            }
            if (high - low > widest) {
                widest = high - low;
                axis = j;
            }
        }
        if (axis < 0) return false;
        direction_.assign(padded_, T(0));
        direction_[axis] = 1;
        return true;
    }

    const Held<T>& held_;
    const Matrix<T>& X_;
    const double* weights_;
    const GrowOptions& options_;
    const Kernels<T>& loops_;
    const int64_t padded_;
    const std::vector<uint32_t>& order_;
    const int64_t split_;  // the number of the split, which numbers the draws
    const int64_t threads_;
    std::vector<T> projection_, best_projection_, direction_;
    T threshold_ = 0;
};

}  // namespace dc2
