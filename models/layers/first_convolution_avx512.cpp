// Compiled for AVX-512 (models/CMakeLists.txt).
#include "models/layers/first_convolution_kernels.h"

namespace basin {

FirstConvolutionLoops first_convolution_avx512(int64_t in) { return loops_for<16>(in); }

}  // namespace basin
