// defines: ScopedNormMode.
#pragma once

#include "models/model.h"

namespace basin {

/// Sets another NormMode during its lifetime.
class ScopedNormMode {
 public:
  ScopedNormMode(Model& model, NormMode mode) : model_(model), before_(model.norm_mode()) {
    model_.set_norm_mode(mode, model_.ghost_batch());
  }
  ~ScopedNormMode() { model_.set_norm_mode(before_, model_.ghost_batch()); }
  ScopedNormMode(const ScopedNormMode&) = delete;
  ScopedNormMode& operator=(const ScopedNormMode&) = delete;

 private:
  Model& model_;
  NormMode before_;
};

}  // namespace basin
