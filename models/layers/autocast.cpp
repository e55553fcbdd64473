#include "models/layers/autocast.h"

#include <ATen/autocast_mode.h>

namespace basin {

Autocast::Autocast(bool on, at::Device device) : on_(on), type_(device.type()) {
  if (!on_) return;
  was_enabled_ = at::autocast::is_autocast_enabled(type_);
  was_cached_ = at::autocast::is_autocast_cache_enabled();
  was_dtype_ = at::autocast::get_autocast_dtype(type_);
  at::autocast::set_autocast_enabled(type_, true);
  at::autocast::set_autocast_cache_enabled(false);
  at::autocast::set_autocast_dtype(type_, at::kBFloat16);
}

Autocast::~Autocast() {
  if (!on_) return;
  at::autocast::set_autocast_enabled(type_, was_enabled_);
  at::autocast::set_autocast_cache_enabled(was_cached_);
  at::autocast::set_autocast_dtype(type_, was_dtype_);
}

at::Tensor autocasted(const at::Tensor& x) {
  const at::DeviceType type = x.device().type();
  if (!at::autocast::is_autocast_enabled(type)) return x;
  return at::autocast::cached_cast(at::autocast::get_autocast_dtype(type), x, type);
}

}  // namespace basin
