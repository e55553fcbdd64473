// defines: ScriptedPartner, the other side of a Partner: a thread in which a network answers over the wire, and errs as a script says.
#pragma once

#include <nlohmann/json.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "hessian/objective.h"
#include "hessian/outside/partner.h"

namespace basin::testing {

/// How a partner errs; the default doesn't.
struct Script {
  std::set<std::string> leaves_out = {};            // answers
  nlohmann::json hello = nlohmann::json::object();  // members that take the place of the hello's own
  int64_t dies_at = 0, hangs_at = 0;                // the number of a question; 0: never
  /// Called before each reply, which it may change, as the vectors; `say` sends a line.
  std::function<void(const nlohmann::json& question, nlohmann::json& reply, SharedVectors& vectors,
                     const std::function<void(const std::string&)>& say)>
      twist = {};
  std::function<std::string(const std::string& line)> garble = {};
};

/// Both ends of the wire are made here; the network is moved by the questions and outlives this object.
class ScriptedPartner {
 public:
  explicit ScriptedPartner(Objective& network, Script script = {});
  ~ScriptedPartner();  // after the Partner: the thread ends with its socket

  std::shared_ptr<Partner> connect(double silence = 20);
  /// As connect(), with other memory: a descriptor.
  std::shared_ptr<Partner> connect_with(int memory, double silence = 20);
  int memory() const { return memory_; }

 private:
  void answer_all();
  bool say(const std::string& line) const;
  nlohmann::json hello() const;
  nlohmann::json reply_to(const nlohmann::json& question);

  Objective& network_;
  Script script_;
  int ours_ = -1, theirs_ = -1, memory_ = -1;
  std::unique_ptr<SharedVectors> vectors_;
  std::thread thread_;
};

/// What a PartnerError or Unanswered says; empty where nothing is thrown.
std::string said_by(const std::function<void()>& action);

/// A memfd of that many bytes.
int shared_memory(int64_t bytes, bool sealed = true);

}  // namespace basin::testing
