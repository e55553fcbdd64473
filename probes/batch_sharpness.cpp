#include "probes/batch_sharpness.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/interrupt.h"
#include "core/math/nan.h"
#include "core/math/statistics.h"
#include "core/math/tensor_norms.h"
#include "core/seed.h"
#include "probes/noise_quantities.h"
#include "probes/registry.h"

namespace basin {
namespace {

constexpr int64_t kExamplesDrawn = 8192;  // at which as many batches as they make are enough
constexpr int64_t kUsualBatch = 32;       // where a run's is not known

/// What was found, batch by batch.
struct BatchCurvatures {
  std::vector<double> along, square, sharpness;  // g'Hg, |g|^2, and the one over the other
  void add(double along_gradient, double squared_gradient) {
    along.push_back(along_gradient);
    square.push_back(squared_gradient);
    sharpness.push_back(along_gradient / squared_gradient);
  }
  bool finite() const {
    const auto is_finite = [](double value) { return std::isfinite(value); };
    return std::all_of(along.begin(), along.end(), is_finite) &&
           std::all_of(square.begin(), square.end(), is_finite);
  }
};

struct Estimates {
  Estimate sharpness = no_estimate(), along = no_estimate(), square = no_estimate(), ratio = no_estimate();
};

/// By how much the choice of n among N examples makes the variance of a mean over k batches of b larger than that of the batches drawn
/// from these n: 1 + k b/(n - b) (1 - n/N). Batches of b alone vary by V, those within n by V (1 - b/n), and the mean over all
/// batches within n by at most V b/n (Hoeffding 1948, theorem 5.2).
double choice_of_examples(double batches, double size, double n, double set) {
  return n < set ? 1 + batches * size / (n - size) * (1 - n / set) : 1;
}

/// Means over batches with their errors; a single batch, all of N examples, has none. `choice`: choice_of_examples().
Estimates estimates_of(const BatchCurvatures& found, double choice) {
  const bool exact = found.along.size() == 1 && choice == 1;
  const double t = exact ? 0 : student_quantile(static_cast<double>(found.along.size()) - 1);
  const auto mean = [&](const std::vector<double>& values) {
    const SampleMean m = mean_of(values);
    const double error = exact ? 0 : m.standard_error * std::sqrt(choice);
    return Estimate{m.value, error, m.value - t * error, m.value + t * error};
  };
  Estimates e{mean(found.sharpness), mean(found.along), mean(found.square)};
  const double together = exact ? 0 : covariance_of_means(found.along, found.square) * choice;
  e.ratio = signed_ratio(e.along.value, e.square.value, e.along.error * e.along.error,
                         e.square.error * e.square.error, together, t);
  return e;
}

Estimate times(const Estimate& e, double factor) {
  return {e.value * factor, e.error * factor, e.low * factor, e.high * factor};
}

class BatchSharpness final : public Probe {
 public:
  explicit BatchSharpness(const BatchSharpnessOptions& options)
      : Probe("batch_sharpness"), options_(options) {}

  /// For 1,000 examples.
  ProbeCost expected_cost() const override {
    const int64_t size = options_.batch_size > 0 ? options_.batch_size : kUsualBatch;
    const double passes = static_cast<double>(batches_of(size) * size) / 1000;
    return {2 * passes, passes};  // a gradient, and the graph that the product is taken from
  }
  std::vector<Answer> needs() const override { return {Answer::batch_gradient, Answer::batch_product}; }

 private:
  int64_t batches_of(int64_t size) const {
    return options_.batches > 0 ? options_.batches : std::clamp<int64_t>(kExamplesDrawn / size, 16, 256);
  }

  int64_t size_wanted(const ProbeContext& context) const {
    if (options_.batch_size > 0) return options_.batch_size;
    return context.batch_size > 0 ? context.batch_size : kUsualBatch;
  }

  void measure(const ProbeContext& context, ProbeResult& result) override {
    const int64_t n = context.problem.examples(), wanted = size_wanted(context);
    // A run whose batches are as large as its training set or larger takes all of it, each example as often.
    const bool enough = wanted <= n || n == context.train_examples;
    const int64_t size = std::min(wanted, n), batches = size == n ? 1 : batches_of(size);
    BatchCurvatures found;
    if (enough) found = curvatures(context, size, batches);
    const bool finite = found.finite();
    const double choice =
        choice_of_examples(static_cast<double>(batches), static_cast<double>(size), static_cast<double>(n),
                           static_cast<double>(context.train_examples));
    add_quantities(enough && finite ? estimates_of(found, choice) : Estimates(), context.learning_rate,
                   finite ? ProbeStatus::ok : ProbeStatus::nonfinite, batches == 1 && choice == 1, result);
    conclude(enough, batches == 1 && choice != 1, wanted, n, result);
    const auto drawn = static_cast<int64_t>(found.along.size());
    const double passes = static_cast<double>(drawn * size) / static_cast<double>(n);
    result.attributes.insert(result.attributes.end(), {{"batch_size", size},
                                                       {"run_batch_size", context.batch_size},
                                                       {"batches", drawn},
                                                       {"gradients", passes},
                                                       {"hvps", passes},
                                                       {"learning_rate", context.learning_rate},
                                                       {"stability_limit", stability_limit(context)}});
  }

  static BatchCurvatures curvatures(const ProbeContext& context, int64_t size, int64_t batches) {
    Problem& problem = context.problem;
    at::Generator generator = make_generator(derive_seed(context.seed, "batches"));
    BatchCurvatures found;
    for (int64_t i = 0; i < batches; ++i) {
      throw_if_interrupted();
      const at::Tensor order = at::randperm(problem.examples(), generator, at::kLong);
      const std::unique_ptr<Problem> batch = problem.part(order.narrow(0, 0, size));
      const std::unique_ptr<CurvatureProducts> hessian = batch->curvature(Curvature::hessian);
      const at::Tensor gradient = batch->gradient();
      found.add(inner_product(gradient, hessian->apply(gradient)), squared_norm(gradient));
    }
    return found;
  }

  static void add_quantities(const Estimates& found, double rate, ProbeStatus status, bool exact,
                             ProbeResult& result) {
    const auto add = [&](const QuantityNaming& naming, const Estimate& e) {
      Quantity q = named(naming, exact ? UncertaintyKind::none : UncertaintyKind::standard_error);
      q.value = {e.value};
      q.uncertainty = {e.error};
      q.ci_low = {e.low};
      q.ci_high = {e.high};
      q.status = status == ProbeStatus::ok && !(std::isfinite(e.value) && std::isfinite(e.error))
                     ? ProbeStatus::not_resolved
                     : status;
      result.quantities.push_back(std::move(q));
    };
    const std::string curvature = "loss/weight^2";
    add({"batch_sharpness", "batch sharpness", "batch-sharpness", curvature}, found.sharpness);
    add({"rate_batch_sharpness", "learning rate times batch sharpness", "batch-sharpness-rate", "1"},
        times(found.sharpness, rate));
    add({"batch_sharpness_ratio", "ratio of the means of g'Hg and |g|^2 over batches",
         "batch-sharpness-ratio", curvature},
        found.ratio);
    add({"batch_curvature", "mean of g'Hg over batches", "batch-sharpness-numerator", "loss^3/weight^4"},
        found.along);
    add({"batch_gradient_square", "mean of |g|^2 over batches", "batch-sharpness-denominator",
         "(loss/weight)^2"},
        found.square);
  }

  static void conclude(bool enough, bool found_one, int64_t wanted, int64_t examples, ProbeResult& result) {
    result.status = gravest_status(result.quantities);
    if (result.status == ProbeStatus::nonfinite) {
      result.message = "a batch's gradient or its product with the Hessian was not finite";
    } else if (!enough) {
      result.message =
          fmt::format("a batch of {} can't be drawn from the {} examples measured (subset = 0 measures all)",
                      wanted, examples);
    } else if (result.status == ProbeStatus::not_resolved) {
      result.message = result.quantities.front().status == ProbeStatus::not_resolved && found_one
                           ? "one batch of all examples measured has no error: measure more of them "
                             "(subset), or smaller batches"
                           : "a batch has no gradient, or the checkpoint no learning rate";
    }
  }

  /// That of the run's method where its steps go along the gradient itself (P = 1), else NaN.
  static double stability_limit(const ProbeContext& context) {
    if (!context.optimizer) return kNaN;
    const ParameterVector& vector = context.problem.parameters();
    const std::vector<at::Tensor> ones = vector.unflatten(at::ones_like(vector.gather()));
    for (const at::Tensor& p : context.optimizer->preconditioner(ones)) {
      if (!(p == 1).all().item<bool>()) return kNaN;
    }
    return context.optimizer->stability_limit();
  }

  BatchSharpnessOptions options_;
};

}  // namespace

void bind_options(OptionTable& table, BatchSharpnessOptions& options) {
  table.add("batch_size", options.batch_size, at_least(0),
            "examples per batch; 0: the run's batch size at that checkpoint, which its stability depends on");
  const Constraint several = between(2, 1'000'000);  // one has no error
  table.add("batches", options.batches,
            {"0 or " + several.text,
             [=](const OptionValue& v) { return std::get<int64_t>(v) == 0 || several.holds(v); }},
            "batches drawn, only one if it holds all examples; 0: as many as make 8,192 examples, 16 to 256");
}

std::unique_ptr<Probe> make_batch_sharpness(const BatchSharpnessOptions& options) {
  return std::make_unique<BatchSharpness>(options);
}

ProbeEntry batch_sharpness_entry() {
  return probe_entry<BatchSharpnessOptions, make_batch_sharpness>({
      .name = "batch_sharpness",
      .label = "batch sharpness",
      .help = "curvature of batches along their own gradients",
      .version = 2,
      .definitions = {"batch-sharpness", "batch-sharpness-rate", "batch-sharpness-ratio",
                      "batch-sharpness-numerator", "batch-sharpness-denominator"},
      .entries = {"batch_sharpness", "rate_batch_sharpness", "batch_sharpness_ratio", "batch_curvature",
                  "batch_gradient_square"},
      .audit = {.cheap = {"batch_size=32", "batches=32"}},
  });
}

}  // namespace basin
