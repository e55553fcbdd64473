#include "models/script/torchscript.h"

#include <ATen/Context.h>
#include <fnmatch.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/seed.h"
#include "models/registry.h"
#include "models/script/script_file.h"
#include "models/script/script_parameters.h"
#include "models/script/script_trial.h"

namespace basin {

void bind_options(OptionTable& table, TorchScriptOptions& options) {
  // A file is named by what is in it, unless the hash is set by hand, before or after: then it has to be that one.
  const auto note_contents = [&options](const std::string& /*name*/, const OptionValue& value) {
    const auto& file = std::get<std::string>(value);
    if (options.sha256_by_hand || file.empty()) return;
    options.sha256 = std::filesystem::is_regular_file(file) ? sha256_of_file(file) : "";
  };
  table.watch(
      [&](OptionTable& t) {
        t.add("file", options.file, anything(),
              "the network's file, written by basin.export() or torch.jit.save()")
            .execution();
      },
      note_contents);
  table.watch(
      [&](OptionTable& t) {
        t.add("sha256", options.sha256, anything(),
              "of the file, from which it is taken; another file under its name is refused");
      },
      [&options, note_contents](const std::string& name, const OptionValue& value) {
        options.sha256_by_hand = !std::get<std::string>(value).empty();
        if (!options.sha256_by_hand) note_contents(name, options.file);
      });
  table.add("start", options.start, one_of({"file", "drawn"}),
            "initial weights: the file's for every seed, or drawn anew as PyTorch draws those of each layer");
  table.add("kinds", options.kinds, anything(),
            "kinds of parameters that aren't as their modules suggest: \"PATTERN=KIND\" of weight, bias, "
            "norm_weight, norm_bias");
}

namespace {

constexpr const char* kOutermost = "self";  // layer of the outermost module's own parameters

/// The kinds that the options give by pattern, before those of kind_of().
class Kinds {
 public:
  explicit Kinds(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      const size_t equals = text.rfind('=');
      if (equals == std::string::npos)
        throw ConfigError(fmt::format("torchscript.kinds: \"{}\" is not PATTERN=KIND", text));
      rules_.push_back({text.substr(0, equals), parameter_kind(text.substr(equals + 1)), false});
    }
  }

  ParameterKind of(const std::string& full_name, const torch::jit::Module& module, const std::string& name,
                   const at::Tensor& parameter) {
    for (Rule& rule : rules_) {
      if (::fnmatch(rule.pattern.c_str(), full_name.c_str(), 0) != 0) continue;
      rule.used = true;
      return rule.kind;
    }
    return kind_of(module, name, parameter);
  }

  void refuse_unused() const {
    for (const Rule& rule : rules_)
      if (!rule.used)
        throw ConfigError(fmt::format("torchscript.kinds: \"{}\" is the name of no parameter", rule.pattern));
  }

 private:
  struct Rule {
    std::string pattern;
    ParameterKind kind;
    bool used;
  };
  std::vector<Rule> rules_;
};

/// Tensors of the file and what stands in their places: one for all names of a tied one.
class Replaced {
 public:
  /// Undefined where `given` is new.
  at::Tensor find(const at::Tensor& given) const {
    for (const auto& [old, now] : pairs_)
      if (old.is_alias_of(given) && old.data_ptr() == given.data_ptr() && old.sizes() == given.sizes() &&
          old.strides() == given.strides())
        return now;
    return {};
  }
  void add(const at::Tensor& given, const at::Tensor& now) { pairs_.emplace_back(given, now); }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs_;
};

/// Batch norm and what its forward passes write their batch's statistics into, so that the running ones stay.
struct NormInUse {
  ScriptNorm norm;
  at::Tensor mean, variance;              // the model's buffers
  at::Tensor batch_mean, batch_variance;  // undefined until they are asked for
  double momentum = 0;
  size_t slot = 0;
};

}  // namespace

struct TorchScript::Net {
  torch::jit::Module module;
  std::string where;
  std::vector<int64_t> output{};  // of one example
  std::vector<NormInUse> norms{};
  std::vector<std::pair<torch::jit::Module, std::string>> constants{};  // tensors that aren't the model's
  size_t dropout_slot = 0;
  bool training = false, by_batch = false;

  at::Tensor run(const at::Tensor& inputs) {
    try {
      return script_logits(run_script(module, inputs), inputs.size(0), output, where);
    } catch (const Error&) {
      throw;
    } catch (const c10::OutOfMemoryError&) {
      throw;
    } catch (const std::runtime_error& error) {
      throw ConfigError(fmt::format("{}: {}", where, script_fault(error)));
    }
  }

  void follow(at::Device device) {
    for (auto& [part, name] : constants) {
      const at::Tensor tensor = part.attr(name).toTensor();
      if (tensor.device() != device) part.setattr(name, tensor.to(device));
    }
  }

  void use(bool train, bool batch) {
    module.train(train);
    for (NormInUse& one : norms) {
      one.norm.by_batch(batch);
      if (!batch) {
        one.norm.put_statistics(one.mean, one.variance);
        continue;
      }
      if (!one.batch_mean.defined() || one.batch_mean.options().device() != one.mean.device() ||
          one.batch_mean.scalar_type() != one.mean.scalar_type()) {
        one.batch_mean = at::zeros_like(one.mean);
        one.batch_variance = at::zeros_like(one.variance);
      }
      one.norm.put_statistics(one.batch_mean, one.batch_variance);
    }
    training = train;
    by_batch = batch;
  }
};

TorchScript::TorchScript(const TorchScriptOptions& options, const InputShape& shape, at::Generator& init)
    : net_(new Net{load_script(options.file, options.sha256),
                   fmt::format("torchscript.file = \"{}\"", options.file), shape.output()}) {
  // Attention by matrix products is the one kernel with second derivatives.
  at::globalContext().setSDPUseFlash(false);
  at::globalContext().setSDPUseMemEfficient(false);
  const ScriptFindings found = try_script(net_->module, shape, net_->where);
  take_tensors(options, found.cancelled, init);
  size_t i = 0;
  for (ScriptNorm& norm : norms_of(net_->module)) {
    for (const NormInUse& other : net_->norms)
      if (other.mean.is_same(norm.mean()))
        throw ConfigError(
            net_->where +
            ": a batch norm stands in two places, so its running statistics are those of neither");
    net_->norms.push_back(
        {norm, norm.mean(), norm.variance(), {}, {}, found.momenta.at(i++), add_batch_norm()});
  }
  if (script_traits(options.file, options.sha256).dropout) net_->dropout_slot = add_dropout();
  net_->use(/*training=*/false, /*batch=*/false);
}

TorchScript::~TorchScript() = default;

void TorchScript::take_tensors(const TorchScriptOptions& options, const std::vector<std::string>& cancelled,
                               at::Generator& init) {
  Kinds kinds(options.kinds);
  Replaced replaced;
  for (const auto& [layer, module] : net_->module.named_modules()) {
    torch::jit::Module part = module;
    const std::string prefix = layer.empty() ? kOutermost : layer;
    for (const auto& [name, parameter] : module.named_parameters(/*recurse=*/false)) {
      at::Tensor now = replaced.find(parameter);
      if (!now.defined()) {
        const bool trained = parameter.requires_grad();
        now = trained ? add_parameter(prefix, name, kinds.of(prefix + "." + name, module, name, parameter),
                                      parameter)
                      : add_buffer(prefix, name, parameter);
        replaced.add(parameter, now);
        const std::string full_name = layer.empty() ? name : layer + "." + name;
        if (std::find(cancelled.begin(), cancelled.end(), full_name) != cancelled.end()) note_cancelled(now);
        if (trained && options.start == "drawn" && !redraw(module, name, now, init))
          throw ConfigError(fmt::format(
              "torchscript.start = \"drawn\": no rule for {}.{} of a {}; start = \"file\" has its weights",
              prefix, name, class_of(module)));
      }
      part.setattr(name, now);
    }
    for (const auto& [name, buffer] : module.named_buffers(/*recurse=*/false)) {
      if (!buffer.is_floating_point()) {
        net_->constants.emplace_back(part, name);
        continue;
      }
      at::Tensor now = replaced.find(buffer);
      if (!now.defined()) replaced.add(buffer, now = add_buffer(prefix, name, buffer));
      part.setattr(name, now);
    }
  }
  kinds.refuse_unused();
}

at::Tensor TorchScript::forward(const at::Tensor& inputs) {
  net_->follow(inputs.device());
  const at::Tensor x = inputs.contiguous();  // a script may take views of its activations
  const bool by_batch =
      !net_->norms.empty() && (norm_mode() == NormMode::ghost_batch || norm_mode() == NormMode::accumulate);
  if (by_batch != net_->by_batch || is_training() != net_->training || by_batch)
    net_->use(is_training(), by_batch);
  return by_batch ? by_ghost_batches(x) : run(x, 0);
}

at::Tensor TorchScript::by_ghost_batches(const at::Tensor& inputs) {
  const int64_t n = inputs.size(0), size = ghost_batch() > 0 ? ghost_batch() : n;
  std::vector<at::Tensor> logits;
  for (int64_t first = 0; first < n; first += size) {
    const int64_t count = std::min(size, n - first);
    if (norm_mode() == NormMode::accumulate)
      for (NormInUse& one : net_->norms) one.norm.fill_statistics(0);
    logits.push_back(run(inputs.narrow(0, first, count), first));
    if (norm_mode() == NormMode::accumulate) accumulate(count);
  }
  return logits.size() == 1 ? logits[0] : at::cat(logits);
}

at::Tensor TorchScript::run(const at::Tensor& inputs, int64_t first) {
  if (is_training() && has_dropout()) {
    const DropoutPlace& place = dropout_place();
    const uint64_t of_update = derive_seed(dropout_key(net_->dropout_slot), "update", place.update);
    at::manual_seed(derive_seed(of_update, "position", place.first + first));
  }
  return net_->run(inputs);
}

// Means weighted by examples, from scratch after reset_running_statistics().
void TorchScript::accumulate(int64_t examples) {
  const at::NoGradGuard no_grad;
  for (NormInUse& one : net_->norms) {
    int64_t& seen = accumulated_examples(one.slot);
    seen += examples;
    const double share = static_cast<double>(examples) / static_cast<double>(seen);
    one.mean.lerp_(one.batch_mean / one.momentum, share);
    one.variance.lerp_(one.batch_variance / one.momentum, share);
  }
}

ModelEntry torchscript_entry() {
  ModelEntry entry{.name = "torchscript",
                   .label = "TorchScript",
                   .help = "A network of yours, from a file of basin.export()."};
  entry.inputs = ModelInputs::any;
  entry.needs_file = true;
  // Lists of models ask without a file.
  return model_entry<TorchScript, TorchScriptOptions>(entry, [](const TorchScriptOptions& o) {
    return o.file.empty() ? ModelTraits{} : script_traits(o.file, o.sha256);
  });
}

}  // namespace basin
