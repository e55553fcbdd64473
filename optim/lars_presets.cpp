// What each code base does, as read in its source on 2026-11-22; docs/optimizers.md has the table with repositories.
#include "optim/lars.h"

namespace basin {
namespace {

using LarsChange = void (*)(LarsOptions&);

/// Algorithm 1 to the letter.
LarsOptions lars_paper() {
  LarsOptions o;
  o.exclude_from_decay = o.exclude_from_trust = {};
  return o;
}

/// What most code bases have where the paper is silent: factor 1 without a ratio, and none for a gradient of 0.
LarsOptions usual() {
  LarsOptions o = lars_paper();
  o.weight_decay = 0;
  o.without_ratio = "one";
  o.zero_norm = "any";
  return o;
}

/// The ratio in torch's classes: the learning rate is torch's, outside the buffer.
LarsOptions torch_usual() {
  LarsOptions o = usual();
  o.rate_in = "step";
  o.eps = 1e-8;
  return o;
}

LarsOptions lars_changed(LarsOptions o, LarsChange change) {
  change(o);
  return o;
}

}  // namespace

const std::vector<Preset<LarsOptions>>& lars_presets() {
  static const std::vector<Preset<LarsOptions>> presets{
      preset("basin", LarsOptions()),
      preset("paper", lars_paper()),
      preset("lamb_paper", lars_changed(lars_paper(),
                                        [](LarsOptions& o) {
                                          o.trust_coefficient = 1;
                                          o.moving_average = true;
                                          o.denominator = "momentum";
                                          o.rate_in = o.ratio_in = "step";
                                        })),
      preset("mlperf", lars_changed(usual(),
                                    [](LarsOptions& o) {
                                      o.weight_decay = 2e-4;
                                      o.eps = 1e-7;  // there 0 is taken for "not given"
                                      o.exclude_from_decay = o.exclude_from_trust = default_exclusions();
                                    })),
      preset("apex", lars_changed(torch_usual(),
                                  [](LarsOptions& o) {
                                    o.trust_coefficient = 0.02;
                                    o.clip = true;
                                    o.zero_norm_drops_decay = true;
                                  })),
      preset("nvcaffe", lars_changed(usual(),
                                     [](LarsOptions& o) {
                                       o.weight_decay = 5e-4;
                                       o.less_momentum = true;
                                       o.denominator = "gradient";
                                     })),
      preset("nus", lars_changed(usual(),
                                 [](LarsOptions& o) {
                                   o.weight_decay = 5e-5;
                                   o.eps = 1e-5;
                                   o.rate_in = o.ratio_in = "step";
                                   o.max_ratio = 50;
                                   o.max_element = 10;
                                   o.exclude_from_decay = o.exclude_from_trust = default_exclusions();
                                 })),
      preset("timm", lars_changed(torch_usual(),
                                  [](LarsOptions& o) {
                                    o.exclude_from_decay = default_exclusions();
                                    o.exclude_from_trust = {"no_decay"};
                                  })),
      preset("tf_models", lars_changed(usual(), [](LarsOptions& o) { o.denominator = "decayed_gradient"; })),
      preset("tpu", lars_changed(usual(),
                                 [](LarsOptions& o) {
                                   o.weight_decay = 1e-4;
                                   o.denominator = "decayed_gradient_plus_decay";
                                   o.exclude_from_decay = {"norm_weight", "norm_bias"};
                                   o.exclude_from_trust = default_exclusions();
                                 })),
      preset("torchlars", torch_usual()),
      preset("jettify", lars_changed(torch_usual(),
                                     [](LarsOptions& o) {
                                       o.trust_coefficient = 0.01;
                                       o.zero_norm_drops_decay = true;
                                       o.exclude_from_trust = {"no_decay"};
                                     })),
      preset("kozistr", lars_changed(torch_usual(),
                                     [](LarsOptions& o) {
                                       o.eps = 0;
                                       o.denominator = "gradient";
                                       o.buffer_start = "gradient";
                                       o.exclude_from_decay = o.exclude_from_trust = {"dim<=1"};
                                     })),
      preset("optax", lars_changed(usual(), [](LarsOptions& o) { o.denominator = "decayed_gradient"; })),
  };
  return presets;
}

}  // namespace basin
