// For tests only: the GPU kernels, run on the host block by block and thread by thread.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "launch.hpp"

namespace nb = nanobind;

namespace dc2 {
namespace device {
namespace {

template <class T>
bool run_for(const std::string& kernel, const void* job, const Block& block) {
    if (kernel == "scan_rows") {
        scan_rows(*static_cast<const ScanJob<T>*>(job), block);
    } else if (kernel == "scan_by_bounds") {
        scan_rows<T, true>(*static_cast<const ScanJob<T>*>(job), block);
    } else if (kernel == "route_rows") {
        const RouteJob<T>& route = *static_cast<const RouteJob<T>*>(job);
        std::vector<Sixteen<T>> memory(route.near_nodes * (route.step + 3) + block.threads * (route.X.width + 1));
        route_rows(route, block, memory.data()->part);
    } else if (kernel == "add_up") {
        add_up(*static_cast<const SumJob<T>*>(job), block);
    } else if (kernel == "add_squares") {
        add_squares(*static_cast<const SumJob<T>*>(job), block);
    } else if (kernel == "find_means") {
        find_means(*static_cast<const MeansJob<T>*>(job), block);
    } else if (kernel == "scale_rows") {
        scale_rows(*static_cast<const ScaleJob<T>*>(job), block);
    } else {
        return false;
    }
    return true;
}

void run_block(const std::string& kernel, bool wide, const void* job, const Block& block) {
    if (kernel == "sort_tile") {
        const SortJob& sort = *static_cast<const SortJob*>(job);
        std::vector<int> bins(sort.bins), sums(2 * block.threads);
        std::vector<unsigned short> places(sort.tile);
        sort_tile(sort, block, bins.data(), sums.data(), places.data());
    } else if (kernel == "hash_rows") {
        hash_rows(*static_cast<const HashJob*>(job), block);
    } else if (!(wide ? run_for<double>(kernel, job, block) : run_for<float>(kernel, job, block))) {
        throw std::invalid_argument("no kernel: " + kernel);
    }
}

// `job`: the address of its record. Blocks run last to first, since nothing may depend on their order.
void launch(const std::string& kernel, bool wide, size_t job, Index blocks, int threads) {
    for (Index number = blocks - 1; number >= 0; --number)
        run_block(kernel, wide, reinterpret_cast<const void*>(job), {number, blocks, threads});
}

}  // namespace
}  // namespace device
}  // namespace dc2

NB_MODULE(device_twin, module) {
    module.def("launch", &dc2::device::launch, nb::arg("kernel"), nb::arg("wide"), nb::arg("job"), nb::arg("blocks"),
               nb::arg("threads"));
}
