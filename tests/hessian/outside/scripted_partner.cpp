#include "tests/hessian/outside/scripted_partner.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

namespace basin::testing {
namespace {

using nlohmann::json;

/// docs/operator-protocol.md's sum, written out once more.
int64_t bytes_needed(int64_t size, int64_t of_each, int64_t examples) {
  const auto aligned = [](int64_t bytes) { return (bytes + 63) / 64 * 64; };
  return 3 * aligned(size * of_each) + 3 * aligned(examples * 8);
}

}  // namespace

std::string said_by(const std::function<void()>& action) {
  try {
    action();
  } catch (const PartnerError& error) {
    return error.what();
  } catch (const Unanswered& error) {
    return error.what();
  }
  return "";
}

int shared_memory(int64_t bytes, bool sealed) {
  const int descriptor = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0 || ::ftruncate(descriptor, bytes) != 0) throw std::runtime_error("no memfd");
  if (sealed && ::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK) != 0) throw std::runtime_error("no seal");
  return descriptor;
}

ScriptedPartner::ScriptedPartner(Objective& network, Script script)
    : network_(network), script_(std::move(script)) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("no sockets");
  ours_ = ends[0];
  theirs_ = ends[1];
  const int64_t size = network.parameters().size();
  memory_ = shared_memory(
      bytes_needed(size, static_cast<int64_t>(c10::elementSize(network.dtype())), network.examples()));
  vectors_ = std::make_unique<SharedVectors>(memory_, size, network.dtype(), network.examples());
  vectors_->weights.copy_(network.parameters().gather());
  thread_ = std::thread([this] { answer_all(); });
}

ScriptedPartner::~ScriptedPartner() {
  if (theirs_ >= 0) ::close(theirs_);
  thread_.join();
  ::close(memory_);
}

std::shared_ptr<Partner> ScriptedPartner::connect(double silence) { return connect_with(memory_, silence); }

std::shared_ptr<Partner> ScriptedPartner::connect_with(int memory, double silence) {
  const int words = theirs_;
  theirs_ = -1;
  return std::make_shared<Partner>(words, memory, silence);
}

bool ScriptedPartner::say(const std::string& line) const {
  const std::string text = (script_.garble ? script_.garble(line) : line) + "\n";
  return ::send(ours_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

json ScriptedPartner::hello() const {
  json parameters = json::array();
  for (const ParameterInfo& p : network_.parameters().parameters())
    parameters.push_back({{"name", p.name},
                          {"layer", p.layer},
                          {"kind", to_string(p.kind)},
                          {"shape", p.tensor.sizes().vec()}});
  json answers = json::array();
  for (const char* name : {"loss", "gradient", "product", "batch_gradient", "batch_product", "losses"})
    if (script_.leaves_out.count(name) == 0) answers.push_back(name);
  json hello = {{"hello", 1},
                {"parameters", parameters},
                {"dtype", network_.dtype() == at::kDouble ? "float64" : "float32"},
                {"examples", network_.examples()},
                {"answers", answers},
                {"loss_units", network_.loss_units()}};
  hello.update(script_.hello);
  return hello;
}

json ScriptedPartner::reply_to(const json& question) {
  network_.parameters().scatter(vectors_->weights);
  const std::string ask = question["ask"];
  const at::Tensor index = vectors_->index.narrow(0, 0, question["batch"].get<int64_t>()).clone();
  json reply = {{"answer", question["number"]}};
  if (ask == "loss") {
    reply["loss"] = network_.loss();
    return reply;
  }
  if (ask == "losses") {
    const at::NoGradGuard no_grad;
    const at::Tensor all = network_.losses(network_.logits(0, network_.examples()), 0, network_.examples());
    vectors_->losses.narrow(0, 0, index.numel()).copy_(all.index_select(0, index));
    reply["size"] = index.numel();
    return reply;
  }
  const std::unique_ptr<Problem> part = index.numel() > 0 ? network_.part(index) : nullptr;
  Problem& asked = part ? *part : network_;
  if (ask == "product" || ask == "batch_product") {
    vectors_->result.copy_(asked.curvature(Curvature::hessian)->apply(vectors_->direction));
  } else {
    double loss = 0;
    vectors_->result.copy_(asked.gradient(&loss));
    reply["loss"] = loss;
  }
  reply["size"] = vectors_->result.numel();
  return reply;
}

void ScriptedPartner::answer_all() {
  std::string text;
  bool open = say(hello().dump());
  while (open) {
    char buffer[4096];
    const ssize_t n = ::recv(ours_, buffer, sizeof buffer, 0);
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
    for (size_t end = text.find('\n'); open && end != std::string::npos; end = text.find('\n')) {
      const json question = json::parse(text.substr(0, end));
      text.erase(0, end + 1);
      if (!question.contains("ask")) continue;
      if (question["number"] == script_.dies_at) open = false;
      if (!open || question["number"] == script_.hangs_at) continue;
      json reply = reply_to(question);
      if (script_.twist)
        script_.twist(question, reply, *vectors_, [&](const std::string& line) { say(line); });
      open = say(reply.dump());
    }
  }
  ::close(ours_);
}

}  // namespace basin::testing
