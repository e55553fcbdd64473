// Compiled for AVX2 (models/CMakeLists.txt).
#include "models/layers/first_convolution_kernels.h"

namespace basin {

FirstConvolutionLoops first_convolution_avx2(int64_t in) { return loops_for<8>(in); }

}  // namespace basin
