// Chooses the variant of the loops for this processor, once, when the module is loaded.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "kernels.hpp"

namespace dc2 {

namespace baseline {
extern const Kernels<float> kernels_float;
extern const Kernels<double> kernels_double;
}
#if defined(DC2_HAVE_X86_VARIANTS)
namespace avx2 {
extern const Kernels<float> kernels_float;
extern const Kernels<double> kernels_double;
}
namespace avx512 {
extern const Kernels<float> kernels_float;
extern const Kernels<double> kernels_double;
}
#endif

namespace {

enum class Level { baseline, avx2, avx512 };

Level best_level() {
#if defined(DC2_HAVE_X86_VARIANTS)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return Level::avx512;
    if (__builtin_cpu_supports("avx2")) return Level::avx2;
#endif
    return Level::baseline;
}

// DC2_SIMD=baseline or avx2 chooses a lesser variant than the processor could run, to compare them.
Level chosen_level() {
    const char* asked = std::getenv("DC2_SIMD");
    const std::string name = asked == nullptr ? "" : asked;
    const Level most = name == "baseline" ? Level::baseline : name == "avx2" ? Level::avx2 : Level::avx512;
    return std::min(most, best_level());
}

const Level level = chosen_level();

template <class T>
const Kernels<T>& choose(const Kernels<T>& baseline, const Kernels<T>& avx2, const Kernels<T>& avx512) {
    return level == Level::avx512 ? avx512 : level == Level::avx2 ? avx2 : baseline;
}

}  // namespace

#if !defined(DC2_HAVE_X86_VARIANTS)
namespace avx2 = baseline;
namespace avx512 = baseline;
#endif

template <>
const Kernels<float>& kernels<float>() {
    return choose(baseline::kernels_float, avx2::kernels_float, avx512::kernels_float);
}

template <>
const Kernels<double>& kernels<double>() {
    return choose(baseline::kernels_double, avx2::kernels_double, avx512::kernels_double);
}

const char* simd_level() {
    return level == Level::avx512 ? "avx512" : level == Level::avx2 ? "avx2" : "baseline";
}

}  // namespace dc2
