#include "models/layers/layer_map.h"

namespace basin {

thread_local LayerMap* LayerMap::active_ = nullptr;

}  // namespace basin
