#include "hessian/outside/partner.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "core/math/nan.h"

namespace basin {
namespace {

using nlohmann::json;

/// The shared weights cut into the problem's parameters.
std::vector<ParameterInfo> parameter_table(const PartnerHello& hello, const at::Tensor& weights) {
  std::vector<ParameterInfo> table;
  int64_t offset = 0;
  for (const PartnerHello::Parameter& p : hello.parameters) {
    const int64_t count = c10::multiply_integers(p.shape);
    table.push_back({p.name, p.layer, p.kind, weights.narrow(0, offset, count).view(p.shape)});
    offset += count;
  }
  return table;
}

/// The sum sees a NaN or an infinity in one pass without memory; one that overflows is looked at again.
bool is_finite(const at::Tensor& vector) {
  return std::isfinite(vector.sum().item<double>()) || at::isfinite(vector).all().item<bool>();
}

}  // namespace

Partner::Partner(int words, int memory, double silence)
    : channel_(words, silence),
      hello_(parse_hello(channel_.receive())),
      vectors_(memory, hello_.size(), hello_.dtype, hello_.examples),
      parameters_(std::make_unique<ParameterVector>(parameter_table(hello_, vectors_.weights))),
      own_(vectors_.weights.clone()) {
  if (!is_finite(own_)) throw PartnerError("a weight of the problem is not finite");
  say(json{{"welcome", kProtocol}, {"heartbeat", silence / 4}}.dump());
}

bool Partner::answers(Answer answer) const {
  return std::find(hello_.answers.begin(), hello_.answers.end(), answer) != hello_.answers.end();
}

/// Gives weights that were written since the last question a number of their own.
void Partner::look_at_weights() {
  const auto version = static_cast<int64_t>(vectors_.weights._version());
  if (version == version_) return;
  version_ = version;
  number_ = at::equal(vectors_.weights, own_) ? 0 : ++moves_;
}

int64_t Partner::put_batch(const at::Tensor& index) {
  if (!index.defined()) return 0;
  const int64_t count = index.numel();
  TORCH_CHECK(count >= 1 && count <= hello_.examples, "a batch of ", count, " of ", hello_.examples,
              " examples");
  vectors_.index.narrow(0, 0, count).copy_(index);
  vectors_.share.narrow(0, 0, count).fill_(1 / static_cast<double>(count));
  return count;
}

Partner::Reply Partner::ask(Answer question, int64_t batch) {
  if (!answers(question)) throw Unanswered({question});
  look_at_weights();
  ++asked_;
  say(json{{"ask", to_string(question)}, {"number", asked_}, {"weights", number_}, {"batch", batch}}.dump());
  while (true) {
    const std::string line = channel_.receive();
    const json said = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!said.is_object()) throw PartnerError("the process that answers said no JSON: " + line.substr(0, 80));
    if (said.contains("alive")) continue;
    const json number = said.value("answer", json()), size = said.value("size", json(0));
    if (number != asked_ || !size.is_number_integer())
      throw PartnerError(fmt::format("question {} was answered by {}", asked_, line.substr(0, 80)));
    // What isn't finite is null in JSON.
    const json loss = said.value("loss", json());
    return {loss.is_number() ? loss.get<double>() : kNaN, size.get<int64_t>()};
  }
}

void Partner::check(Answer question, const Reply& reply, const at::Tensor& vector) const {
  const bool has_loss =
      question != Answer::product && question != Answer::batch_product && question != Answer::losses;
  const bool finite = (!has_loss || std::isfinite(reply.loss)) && (!vector.defined() || is_finite(vector));
  if (number_ == 0 && !finite)
    throw PartnerError(fmt::format("{} ({}): not finite at the problem's own weights", in_words(question),
                                   to_string(question)));
}

at::Tensor Partner::vector_of(Answer question, const Reply& reply) const {
  if (reply.size != hello_.size())
    throw PartnerError(fmt::format("{} ({}): {} numbers; the parameters have {}", in_words(question),
                                   to_string(question), reply.size, hello_.size()));
  check(question, reply, vectors_.result);
  return vectors_.result.clone();
}

double Partner::loss(const at::Tensor& index) {
  if (index.defined()) return losses(index).mean().item<double>();
  const Reply reply = ask(Answer::loss, 0);
  check(Answer::loss, reply, {});
  return reply.loss;
}

at::Tensor Partner::losses(const at::Tensor& index) {
  const int64_t count = put_batch(index);
  const Reply reply = ask(Answer::losses, count);
  if (reply.size != count)
    throw PartnerError(fmt::format("{} ({}): {} numbers for {} examples", in_words(Answer::losses),
                                   to_string(Answer::losses), reply.size, count));
  const at::Tensor losses = vectors_.losses.narrow(0, 0, count);
  check(Answer::losses, reply, losses);
  return losses.clone();
}

at::Tensor Partner::gradient(const at::Tensor& index, double* loss) {
  const Answer question = index.defined() ? Answer::batch_gradient : Answer::gradient;
  const Reply reply = ask(question, put_batch(index));
  at::Tensor gradient = vector_of(question, reply);
  if (loss) *loss = reply.loss;
  return gradient;
}

at::Tensor Partner::product(const at::Tensor& v, const at::Tensor& index) {
  vectors_.direction.copy_(v);
  const Answer question = index.defined() ? Answer::batch_product : Answer::product;
  const Reply reply = ask(question, put_batch(index));
  return vector_of(question, reply);
}

}  // namespace basin
