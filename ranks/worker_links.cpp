#include "ranks/worker_links.h"

#include <ATen/ops/full.h>
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

}  // namespace

WorkerLinks::WorkerLinks(const RankGroup& ranks, int64_t weights, at::ScalarType dtype) {
  const int workers = ranks.size() - 1;
  require_open_files(kServersFiles + kFilesOfPair * workers,
                     fmt::format("the server of {} ranks", ranks.size()));
  for (int rank = 1; rank < ranks.size(); ++rank) {
    Link link;
    link.pair = ranks.pair(rank);
    link.loss = at::zeros({}, at::kDouble);
    link.gradient = at::zeros({weights}, dtype);
    links_.push_back(std::move(link));
  }
}

WorkerLinks::~WorkerLinks() {
  try {
    finish();
  } catch (const std::exception&) {
    return;  // they see for themselves that the server is gone
  }
}

void WorkerLinks::lose(Link& link, const RankLost& why) {
  link.lost = why.what();
  link.loss_sum.reset();
  link.gradient_sum.reset();
}

void WorkerLinks::send(int64_t worker, const WorkOrder& order, const at::Tensor& weights) {
  Link& link = links_[static_cast<size_t>(worker)];
  try {
    link.pair->broadcast(message(Word::order, order));
    link.pair->broadcast(weights);
    link.loss.zero_();
    link.gradient.zero_();
    link.loss_sum = link.pair->begin_sum(link.loss);
    link.gradient_sum = link.pair->begin_sum(link.gradient);
  } catch (const RankLost& lost) {
    lose(link, lost);
  }
}

bool WorkerLinks::takes_push(Link& link) {
  if (!link.gradient_sum) return false;
  try {
    link.loss_sum->wait();
    link.gradient_sum->wait();
  } catch (const RankLost& lost) {
    lose(link, lost);
    return false;
  }
  link.loss_sum.reset();
  link.gradient_sum.reset();
  return true;
}

WorkerEvent WorkerLinks::receive() {
  while (true) {
    for (size_t k = 0; k < links_.size(); ++k) {
      Link& link = links_[k];
      const auto worker = static_cast<int64_t>(k);
      if (link.gone) continue;
      const bool here = link.gradient_sum && (link.gradient_sum->is_done() || link.pair->has_lost());
      if (here && takes_push(link)) return {worker, "", link.loss.item<double>(), link.gradient};
      if (link.lost.empty()) continue;
      link.gone = true;
      return {worker, link.lost};
    }
    std::this_thread::sleep_for(kLookAtWorkers);
  }
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
  for (Link& link : links_) unless_lost(link, [&] { takes_push(link); });
  parted_ = part || std::any_of(links_.begin(), links_.end(), is_lost);
  for (Link& link : links_) {
    if (is_lost(link)) continue;
    unless_lost(link, [&] {
      link.pair->broadcast(message(Word::end, {parted_ ? 1 : 0, 0}));
      link.pair->part();
    });
    parted_ |= is_lost(link);  // after the others heard that nobody was
  }
  return parted_;
}

ServerLink::ServerLink(const RankGroup& ranks, int64_t weights, at::ScalarType dtype)
    : pair_(ranks.pair(ranks.rank())), weights_(at::zeros({weights}, dtype)) {}

std::optional<WorkOrder> ServerLink::pull() {
  const at::Tensor order = message(Word::order, {});
  pair_->broadcast(order);
  const auto* numbers = order.const_data_ptr<int64_t>();
  if (numbers[0] == static_cast<int64_t>(Word::end)) {
    parts_ = numbers[1] != 0;
    pair_->part();
    return std::nullopt;
  }
  pair_->broadcast(weights_);
  return WorkOrder{numbers[1], numbers[2]};
}

void ServerLink::push(double loss, const at::Tensor& gradient) {
  pair_->sum(at::full({}, loss, at::kDouble));
  pair_->sum(gradient);
}

}  // namespace basin
