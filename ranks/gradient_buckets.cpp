#include "ranks/gradient_buckets.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace basin {
namespace {

constexpr int64_t kAlignment = 64;

struct Bucket {
  at::Tensor flat;
  int64_t gradients = 0, ready = 0;
};

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

struct GradientBuckets::State {
  explicit State(const RankGroup& group) : ranks(group) {}

  void note(size_t bucket) {
    if (!armed) return;
    ++buckets[bucket].ready;
    while (begun.size() < buckets.size() && buckets[begun.size()].ready == buckets[begun.size()].gradients)
      begin();
    on_the_way = static_cast<int64_t>(begun.size());
  }
  void begin() { begun.push_back(ranks.begin_sum(buckets[begun.size()].flat)); }

  const RankGroup& ranks;
  std::vector<Bucket> buckets;
  std::vector<std::unique_ptr<PendingSum>> begun;  // of the first buckets
  bool armed = false;
  int64_t on_the_way = 0;
};

namespace {

/// Runs when a parameter's gradient of this pass has been added.
class Added final : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit Added(std::function<void()> note) : note_(std::move(note)) {}
  void operator()(const torch::autograd::Variable&) override { note_(); }

 private:
  std::function<void()> note_;
};

/// The parameters of each bucket, from the last to the first.
std::vector<std::vector<size_t>> divided(const std::vector<at::Tensor>& parameters, int64_t bytes) {
  std::vector<std::vector<size_t>> buckets;
  int64_t filled = 0;
  for (size_t i = parameters.size(); i-- > 0;) {
    const int64_t size = aligned(static_cast<int64_t>(parameters[i].nbytes()));
    const bool fits = !buckets.empty() && filled + size <= bytes &&
                      parameters[buckets.back().front()].dtype() == parameters[i].dtype();
    if (!fits) {
      buckets.emplace_back();
      filled = 0;
    }
    buckets.back().push_back(i);
    filled += size;
  }
  return buckets;
}

}  // namespace

GradientBuckets::GradientBuckets(std::vector<at::Tensor> parameters, const RankGroup& ranks, int64_t bytes)
    : state_(std::make_shared<State>(ranks)), parameters_(std::move(parameters)) {
  const at::NoGradGuard no_grad;
  for (const std::vector<size_t>& members : divided(parameters_, bytes)) {
    const size_t number = state_->buckets.size();
    const int64_t item = parameters_[members.front()].element_size();
    int64_t total = 0;
    for (const size_t i : members) total += aligned(static_cast<int64_t>(parameters_[i].nbytes())) / item;
    Bucket bucket{at::zeros({total}, parameters_[members.front()].options().requires_grad(false)),
                  static_cast<int64_t>(members.size())};
    int64_t place = 0;
    for (const size_t i : members) {
      at::Tensor& parameter = parameters_[i];
      TORCH_CHECK(parameter.is_non_overlapping_and_dense(), "a parameter with gaps");
      parameter.mutable_grad() = bucket.flat.as_strided(parameter.sizes(), parameter.strides(), place);
      place += aligned(static_cast<int64_t>(parameter.nbytes())) / item;
      torch::autograd::impl::set_post_acc_grad_hooks(
          parameter, std::make_unique<Added>([state = state_, number] { state->note(number); }));
    }
    state_->buckets.push_back(std::move(bucket));
  }
}

GradientBuckets::~GradientBuckets() {
  for (const at::Tensor& parameter : parameters_)
    torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
}

void GradientBuckets::arm() { state_->armed = true; }

void GradientBuckets::finish() {
  if (!state_->armed) state_->on_the_way = 0;
  while (state_->begun.size() < state_->buckets.size()) state_->begin();
  for (const auto& sum : state_->begun) sum->wait();
  state_->begun.clear();
  for (Bucket& bucket : state_->buckets) bucket.ready = 0;
  state_->armed = false;
}

int64_t GradientBuckets::buckets() const { return static_cast<int64_t>(state_->buckets.size()); }
int64_t GradientBuckets::begun_on_the_way() const { return state_->on_the_way; }

}  // namespace basin
