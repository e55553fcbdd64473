#include "models/mlp.h"

#include "models/registry.h"
#include "models/unit_sources.h"

namespace basin {

void bind_options(OptionTable& table, MlpOptions& options) {
  table.add("hidden", options.hidden, at_least(1), "sizes of the hidden layers");
  table.add("activation", options.activation, one_of(activation_names()),
            "activation function, after each hidden layer");
  table.add("norm", options.norm, one_of(norm_names()), "normalisation between linear map and activation");
  table.add("groups", options.groups, at_least(1), "norm = \"group\": groups of units");
}

Mlp::Mlp(const MlpOptions& options, const InputShape& shape, at::Generator& init)
    : activation_(activation_named(options.activation)) {
  const Builder builder{*this, init};
  int64_t width = c10::multiply_integers(shape.example());
  for (size_t i = 0; i < options.hidden.size(); ++i) {
    linears_.emplace_back(builder, fmt::format("fc{}", i + 1), width, options.hidden[i]);
    width = options.hidden[i];
    norms_.emplace_back(builder, fmt::format("norm{}", i + 1), width, norm_named(options.norm),
                        options.groups);
  }
  linears_.emplace_back(builder, fmt::format("fc{}", options.hidden.size() + 1), width, shape.classes);
}

at::Tensor Mlp::forward(const at::Tensor& images) {
  at::Tensor x = images.flatten(1);  // channels, rows, columns, whatever the memory format
  for (size_t i = 0; i < norms_.size(); ++i) x = activate(activation_, norms_[i].after(linears_[i], x));
  return linears_.back()(x);
}

std::vector<UnitGroup> Mlp::unit_groups() const {
  std::vector<UnitGroup> groups;
  for (size_t i = 1; i <= norms_.size(); ++i) {
    append_unit_group(groups, *this, activation_ == Activation::relu,
                      {{fmt::format("fc{}", i), fmt::format("norm{}", i)}}, {fmt::format("fc{}", i + 1)});
  }
  return groups;
}

ModelEntry mlp_entry() {
  return model_entry<Mlp, MlpOptions>(
      {"mlp",
       "MLP",
       "Fully connected layers.",
       {"hidden=[6]", "activation=softplus"},
       norm_variants(),
       {"activation=relu"},
       ModelInputs::numbers},
      [](const MlpOptions& o) { return ModelTraits{.batch_statistics = has_batch_statistics(o.norm)}; });
}

}  // namespace basin
