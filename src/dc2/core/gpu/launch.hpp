// The kernels, under the names by which Python starts them.
#pragma once
#include "routing.hpp"
#include "scaling.hpp"
#include "sums.hpp"

#if defined(__CUDACC__)

using namespace dc2::device;

DC2_FUNCTION Block own_block() { return {Index(blockIdx.x), Index(gridDim.x), int(blockDim.x)}; }

extern __shared__ double shared_memory[];

constexpr bool kManyHeld = kHeld && kChunks * sizeof(DC2_REAL) > 64 * 4;  // then registers suffice for 384 threads
extern "C" __global__ void __launch_bounds__(kManyHeld ? 384 : 256) scan_rows_kernel(const ScanJob<DC2_REAL>* job) {
    scan_rows(*job, own_block());
}
extern "C" __global__ void __launch_bounds__(kManyHeld ? 384 : 256) scan_by_bounds_kernel(const ScanJob<DC2_REAL>* job) {
    scan_rows<DC2_REAL, true>(*job, own_block());
}
#if DC2_WIDTH * DC2_REAL_BYTES <= 256
extern "C" __global__ void __launch_bounds__(DC2_WIDTH * DC2_REAL_BYTES <= 80 ? 1024 : 256)
    route_rows_kernel(const RouteJob<DC2_REAL>* job) {
    route_rows(*job, own_block(), reinterpret_cast<DC2_REAL*>(shared_memory));
}
#endif
extern "C" __global__ void sort_tile_kernel(const SortJob* job) {
    int* bins = reinterpret_cast<int*>(shared_memory);
    int* sums = bins + job->bins;
    sort_tile(*job, own_block(), bins, sums, reinterpret_cast<unsigned short*>(sums + 2 * blockDim.x));
}
extern "C" __global__ void __launch_bounds__(256, 2) add_up_kernel(const SumJob<DC2_REAL>* job) { add_up(*job, own_block()); }
extern "C" __global__ void add_squares_kernel(const SumJob<DC2_REAL>* job) { add_squares(*job, own_block()); }
extern "C" __global__ void find_means_kernel(const MeansJob<DC2_REAL>* job) { find_means(*job, own_block()); }
extern "C" __global__ void hash_rows_kernel(const HashJob* job) { hash_rows(*job, own_block()); }
extern "C" __global__ void scale_rows_kernel(const ScaleJob<DC2_REAL>* job) { scale_rows(*job, own_block()); }

#endif
