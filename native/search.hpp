// The search for the centres nearest to a row. Follows `search` of src/dc2/core/reference.py. Part of kernels.cpp, and
// compiled with it once per instruction set.
#pragma once
#include <cmath>
#include <limits>

#include "bounds.hpp"
#include "lanes.hpp"
#include "lists.hpp"

namespace dc2 {
namespace DC2_ARCH {

// The nearest centres of all tried so far, by distance and then by number; and which of their lists were tried.
template <class T, int Chunks>
class Search {
public:
    explicit Search(const ScanJob<T>& job)
        : job_(job),
          padded_(padded_width(job.X.width)),
          held_(job.neighbor_lists == nullptr ? 0 : job.beam > job.few ? job.beam : job.few),
          bounds_(*job.rough),
          waiting_(job.neighbor_lists == nullptr || kNarrow ? 0 : job.candidates),
          squares_(job.neighbor_lists == nullptr || kNarrow ? 0 : job.candidates) {}

    int32_t nearest(const T* x, int32_t leaf) {
        run(x, leaf, job_.beam);
        return held_.data()[0].id;
    }

    // The squared distance of the centre that `nearest` gave.
    double own_distance() const { return double(held_.data()[0].distance); }

    // Writes the few nearest of the row for which `nearest` gave `id`.
    void write_few(const T* x, int32_t id, int32_t* ids, T* distances) {
        if (job_.few > job_.beam) run(x, id, job_.few);
        for (int64_t i = 0; i < job_.few; ++i) {
            const Held& one = held_.data()[i < count_ ? i : count_ - 1];
            ids[i] = one.id;
            distances[i] = one.distance;
        }
    }

private:
    // Narrow rows: to measure a distance again is cheaper than to note that it was measured.
    static constexpr bool kNarrow = Chunks > 0;

    struct Held {
        T distance;
        int32_t id;
        int32_t tried;  // whether its list was
    };

    void run(const T* x, int32_t start, int64_t width) {
        Held* held = held_.data();
        x_ = x;
        width_ = width;
        held[0] = {squared_distance<T, Chunks>(x, centre(start), padded_ / kLanes), start, 0};
        count_ = 1;
        next_ = 0;
        worst_ = width == 1 ? held[0].distance : std::numeric_limits<T>::infinity();
        if (!kNarrow) {
            begin_marks(start);
            if (bounds_.known()) bounds_.begin(x);
        }
        while (next_ < count_) {
            Held& here = held[next_++];
            if (here.tried) continue;
            here.tried = 1;
            kNarrow ? try_list(here.id, here.distance) : try_unseen(here.id, here.distance);
        }
    }

    // A centre p on the list of c is at least as far from x as |p - c| - |x - c|, and lists are sorted by |p - c|.
    T reach_from(T distance) const { return (std::sqrt(distance) + std::sqrt(worst_)) * T(1.001); }

    void try_list(int32_t at, T distance) {
        const int32_t* list = job_.neighbor_lists + at * job_.candidate_step;
        const T* gaps = job_.gaps + at * job_.candidate_step;
        T reach = reach_from(distance);
        for (int64_t k = 0; k < job_.candidates && !(gaps[k] > reach); k += 4)
            if (offer_four(list + k, 4)) reach = reach_from(distance);
    }

    void try_unseen(int32_t at, T distance) {
        const int32_t* list = job_.neighbor_lists + at * job_.candidate_step;
        const T* gaps = job_.gaps + at * job_.candidate_step;
        const T reach = reach_from(distance);
        int32_t* waiting = waiting_.data();
        int64_t count = 0;
        for (int64_t k = 0; k < job_.candidates && !(gaps[k] > reach); ++k) {
            uint8_t& seen = job_.tried.marks[list[k]];
            if (seen == mark_) continue;
            seen = mark_;
            waiting[count++] = list[k];
            if (!bounds_.known()) prefetch(centre(list[k]), kAhead);
        }
        const auto measure = [&](const int32_t* some, int64_t left) {
            int32_t four[4];
            for (int64_t i = 0; i < left; i += 4) {
                for (int64_t j = 0; j < 4; ++j) four[j] = some[i + j < left ? i + j : i];
                offer_four(four, left - i < 4 ? left - i : 4);
            }
        };
        if (bounds_.known()) {
            offer_near(bounds_, {waiting, squares_.data(), count}, width_, worst_, measure);
        } else {
            measure(waiting, count);
        }
    }

    // Returns whether the farthest one held has changed.
    bool offer_four(const int32_t* ids, int64_t count) {
        const T* const points[4] = {centre(ids[0]), centre(ids[1]), centre(ids[2]), centre(ids[3])};
        T found[4];
        if (!four_within<T, Chunks>(x_, points, padded_ / kLanes, worst_, found)) return false;
        if (!((found[0] <= worst_) | (found[1] <= worst_) | (found[2] <= worst_) | (found[3] <= worst_)))
            return false;
        const T before = worst_;
        for (int64_t i = 0; i < count; ++i)
            if (found[i] <= worst_) offer(found[i], ids[i]);
        return worst_ != before;
    }

    void offer(T distance, int32_t id) {
        Held* held = held_.data();
        int64_t place = count_;
        while (place > 0 && comes_before(distance, id, held[place - 1].distance, held[place - 1].id)) --place;
        if (place == width_ || (place > 0 && held[place - 1].id == id)) return;
        if (count_ < width_) ++count_;
        for (int64_t i = count_ - 1; i > place; --i) held[i] = held[i - 1];
        held[place] = {distance, id, 0};
        if (place < next_) next_ = place;
        if (count_ == width_) worst_ = held[width_ - 1].distance;
    }

    void begin_marks(int32_t start) {
        mark_ = ++*job_.tried.last;
        if (mark_ == 0) {
            for (int64_t i = 0; i < job_.signatures; ++i) job_.tried.marks[i] = 0;
            mark_ = *job_.tried.last = 1;
        }
        job_.tried.marks[start] = mark_;
    }

    const T* centre(int32_t id) const { return job_.centres + id * padded_; }

    static constexpr int64_t kAhead = 64;  // values: the processor sees by itself that the others follow

    const ScanJob<T>& job_;
    const int64_t padded_;
    LineBuffer<Held> held_;
    Bounds<T> bounds_;
    LineBuffer<int32_t> waiting_, squares_;
    uint8_t mark_ = 0;
    const T* x_ = nullptr;
    int64_t width_ = 1, count_ = 0, next_ = 0;
    T worst_ = 0;
};

}  // namespace DC2_ARCH
}  // namespace dc2
