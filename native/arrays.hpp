// NumPy arrays as the core takes and gives them.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <vector>

#include "kernels.hpp"

namespace dc2 {

namespace nb = nanobind;
using std::optional;

template <class T>
using Rows = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;  // any layout
template <class T>
using In1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out3 = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <class T, int N>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<N>>;

inline void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

inline bool all_within(const int32_t* values, size_t count, int64_t low, int64_t stop) {
    return std::all_of(values, values + count, [&](int32_t value) { return value >= low && value < stop; });
}

template <class T>
Matrix<T> matrix(const Rows<T>& X) {
    const bool in_lanes = X.stride(1) == 1 && X.shape(1) % kLanes == 0;
    return {X.data(), int64_t(X.shape(0)), int64_t(X.shape(1)), X.stride(0), X.stride(1), in_lanes};
}

template <class A>
auto pointer(const optional<A>& array) -> decltype(array->data()) {
    return array ? array->data() : nullptr;
}

// Hands a vector over to NumPy without a copy.
template <class T, int N>
Array<T, N> give(std::vector<T>&& values, std::initializer_list<size_t> shape) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Array<T, N>(kept->data(), shape, owner);
}

// Rows in chunks of eight lanes: used in place if they fill whole chunks, otherwise copied to `store`.
template <class T>
const T* padded(const In2<T>& rows, LineBuffer<T>& store) {
    const int64_t count = int64_t(rows.shape(0)), width = int64_t(rows.shape(1)), wide = padded_width(width);
    if (width == wide) return rows.data();
    store = LineBuffer<T>(count * wide);
    for (int64_t i = 0; i < count; ++i) std::copy_n(rows.data() + i * width, width, store.data() + i * wide);
    return store.data();
}

// Rows whose length is a multiple of four: used in place if it is, otherwise filled up with each row's first entry.
template <class T>
const T* in_fours(const In2<T>& rows, std::vector<T>& store) {
    const int64_t count = int64_t(rows.shape(0)), width = int64_t(rows.shape(1)), wide = (width + 3) / 4 * 4;
    if (width == wide) return rows.data();
    for (int64_t i = 0; i < count; ++i) {
        store.insert(store.end(), rows.data() + i * width, rows.data() + (i + 1) * width);
        store.insert(store.end(), wide - width, rows.data()[i * width]);
    }
    return store.data();
}

}  // namespace dc2
