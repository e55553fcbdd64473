#include "ranks/worker_links.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "ranks/place.h"

namespace basin {
namespace {

constexpr std::chrono::microseconds kLookAtWorkers(50);

// A server has 13 and for each rank 11 (35 at 2 ranks, 90 at 7: entries of /proc/PID/fd), and some at checkpoints.
constexpr int kServersFiles = 40, kFilesOfPair = 11;

enum class Word : int64_t { end, order };

at::Tensor message(Word word, const WorkOrder& order) {
  return at::tensor(std::vector<int64_t>{static_cast<int64_t>(word), order.start, order.draw}, at::kLong);
}

constexpr int64_t kOutcome = 2;  // numbers that a push has besides: loss and seconds

/// Two that meet are not watched while they do (RankGroup::pair). Whoever ends before is noticed here.
void meet_all(const RankGroup& ranks) { ranks.any(false); }

}  // namespace

WorkerLinks::WorkerLinks(const RankGroup& ranks, int64_t weights, at::ScalarType dtype) {
  const int workers = ranks.size() - 1;
  require_open_files(kServersFiles + kFilesOfPair * workers,
                     fmt::format("the server of {} ranks", ranks.size()));
  meet_all(ranks);
  for (int rank = 1; rank < ranks.size(); ++rank) {
    Link link;
    link.pair = ranks.pair(rank);
    link.outcome = at::zeros({kOutcome}, at::kDouble);
    link.gradient = at::zeros({weights}, dtype);
    links_.push_back(std::move(link));
  }
}

WorkerLinks::~WorkerLinks() {
  try {
    if (begun_) finish();
  } catch (const std::exception&) {
    return;  // they see for themselves that the server is gone
  }
}

void WorkerLinks::lose(Link& link, const RankLost& why) {
  link.lost = why.what();
  link.outcome_sum.reset();
  link.gradient_sum.reset();
}

void WorkerLinks::send(int64_t worker, const WorkOrder& order, const at::Tensor& weights) {
  begun_ = true;
  Link& link = links_[static_cast<size_t>(worker)];
  try {
    link.pair->broadcast(message(Word::order, order));
    link.pair->broadcast(weights);
    link.outcome.zero_();
    link.gradient.zero_();
    link.outcome_sum = link.pair->begin_sum(link.outcome);
    link.gradient_sum = link.pair->begin_sum(link.gradient);
  } catch (const RankLost& lost) {
    lose(link, lost);
  }
}

bool WorkerLinks::takes_push(Link& link) {
  if (!link.gradient_sum) return false;
  try {
    link.outcome_sum->wait();
    link.gradient_sum->wait();
  } catch (const RankLost& lost) {
    lose(link, lost);
    return false;
  }
  link.outcome_sum.reset();
  link.gradient_sum.reset();
  return true;
}

void WorkerLinks::look_for_arrivals() {
  for (size_t k = 0; k < links_.size(); ++k) {
    Link& link = links_[k];
    if (link.arrived || link.gone) continue;
    const bool pushed = link.gradient_sum && (link.gradient_sum->is_done() || link.pair->has_lost());
    link.arrived = pushed || !link.lost.empty();
    if (link.arrived) arrived_.push_back(k);
  }
}

WorkerEvent WorkerLinks::receive() {
  for (look_for_arrivals(); arrived_.empty(); look_for_arrivals())
    std::this_thread::sleep_for(kLookAtWorkers);
  const size_t k = arrived_.front();
  arrived_.pop_front();
  Link& link = links_[k];
  link.arrived = false;
  const auto worker = static_cast<int64_t>(k);
  if (takes_push(link)) {
    const auto* outcome = link.outcome.const_data_ptr<double>();
    return {worker, "", outcome[0], outcome[1], link.gradient};
  }
  link.gone = true;
  return {worker, link.lost};
}

bool WorkerLinks::finish(bool part) {
  if (finished_) return parted_;
  finished_ = true;
  const auto is_lost = [](const Link& link) { return !link.lost.empty(); };
  // The run has ended: a signal that is heard of together with a loss can't interrupt it any more.
  const auto unless_lost = [this](Link& link, const auto& call) {
    try {
      call();
    } catch (const RankLost& lost) {
      lose(link, lost);
    } catch (const Interrupted& signal) {
      lose(link, RankLost(signal.what()));
    }
  };
  const auto for_each_left = [&](const auto& call) {
    for (Link& link : links_)
      if (!is_lost(link)) unless_lost(link, [&] { call(link); });
  };
  // All are asked before any hears whether the ranks part: a worker may be gone, or silent, since its last push.
  for_each_left([&](Link& link) {
    takes_push(link);
    if (is_lost(link)) return;
    link.pair->broadcast(message(Word::end, {}));
    link.pair->any(false);
  });
  parted_ = part || std::any_of(links_.begin(), links_.end(), is_lost);
  for_each_left([&](Link& link) {
    link.pair->any(parted_);
    link.pair->part();
  });
  return parted_;
}

ServerLink::ServerLink(const RankGroup& ranks, int64_t weights, at::ScalarType dtype)
    : weights_(at::zeros({weights}, dtype)) {
  meet_all(ranks);
  pair_ = ranks.pair(ranks.rank());
}

std::optional<WorkOrder> ServerLink::pull() {
  const at::Tensor order = message(Word::order, {});
  pair_->broadcast(order);
  const auto* numbers = order.const_data_ptr<int64_t>();
  if (numbers[0] == static_cast<int64_t>(Word::end)) {
    pair_->any(false);  // still here
    parts_ = pair_->any(false);
    pair_->part();
    return std::nullopt;
  }
  pair_->broadcast(weights_);
  pulled_ = Clock::now();
  return WorkOrder{numbers[1], numbers[2]};
}

void ServerLink::push(double loss, const at::Tensor& gradient) {
  pair_->sum(at::tensor({loss, seconds_since(pulled_)}, at::kDouble));
  pair_->sum(gradient);
}

}  // namespace basin
