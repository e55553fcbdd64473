// What each code base does, as read in its source on 2026-11-22; docs/optimizers.md has the table with repositories.
#include "optim/lamb.h"

namespace basin {
namespace {

using LambChange = void (*)(LambOptions&);

/// Algorithm 2 to the letter.
LambOptions lamb_paper() {
  LambOptions o;
  o.exclude_from_decay = o.exclude_from_trust = {};
  return o;
}

LambOptions lamb_changed(LambOptions o, LambChange change) {
  change(o);
  return o;
}

LambOptions timm() {
  return lamb_changed(lamb_paper(), [](LambOptions& o) {
    o.max_gradient_norm = 1;
    o.exclude_from_decay = default_exclusions();
    o.exclude_from_trust = {"no_decay"};
  });
}

/// cybertron and jettify do the same by default.
LambOptions undebiased() {
  return lamb_changed(lamb_paper(), [](LambOptions& o) {
    o.weight_decay = 0;
    o.bias_correction = "none";
    o.max_weight_norm = 10;
  });
}

}  // namespace

const std::vector<Preset<LambOptions>>& lamb_presets() {
  static const std::vector<Preset<LambOptions>> presets{
      preset("basin", LambOptions()),
      preset("paper", lamb_paper()),
      preset("addons", lamb_changed(lamb_paper(), [](LambOptions& o) { o.weight_decay = 0; })),
      preset("mlperf", lamb_changed(lamb_paper(),
                                    [](LambOptions& o) {
                                      o.max_gradient_norm = 1;
                                      o.exclude_from_decay = o.exclude_from_trust = default_exclusions();
                                    })),
      preset("apex", lamb_changed(lamb_paper(),
                                  [](LambOptions& o) {
                                    o.max_gradient_norm = 1;
                                    o.exclude_from_trust = {"no_decay"};
                                  })),
      preset("nvlamb", lamb_changed(lamb_paper(), [](LambOptions& o) { o.max_gradient_norm = 1; })),
      preset("nus", lamb_changed(lamb_paper(),
                                 [](LambOptions& o) {
                                   o.weight_decay = 5e-5;
                                   o.bias_correction = "none";
                                   o.max_gradient_norm = 1;
                                   o.clip_eps = 1e-6;
                                   o.exclude_from_decay = default_exclusions();
                                   o.exclude_from_trust = {"no_decay"};
                                 })),
      preset("cybertron", undebiased()),
      preset("timm", timm()),
      preset("timm_clip", lamb_changed(timm(), [](LambOptions& o) { o.max_ratio = 1; })),
      preset("jettify", undebiased()),
      preset("kozistr", lamb_changed(undebiased(),
                                     [](LambOptions& o) {
                                       o.bias_correction = "rate_first";
                                       o.decay = "decoupled_before";
                                       o.eps_in_ratio = true;
                                     })),
      preset("optax", lamb_changed(lamb_paper(), [](LambOptions& o) { o.weight_decay = 0; })),
  };
  return presets;
}

}  // namespace basin
