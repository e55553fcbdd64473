#include "hessian/problem.h"

#include <ATen/ATen.h>

namespace basin {
namespace {

struct Name {
  Answer answer;
  const char *name, *words;
};

constexpr Name kNames[] = {
    {Answer::loss, "loss", "the loss"},
    {Answer::gradient, "gradient", "the gradient"},
    {Answer::product, "product", "Hessian-vector products"},
    {Answer::batch_gradient, "batch_gradient", "the gradient of a weighted batch"},
    {Answer::batch_product, "batch_product", "Hessian-vector products of a weighted batch"},
    {Answer::losses, "losses", "losses by example"},
    {Answer::logits, "logits", "the network's logits"},
    {Answer::layers, "layers", "the network's layers"},
};

const Name& name_of(Answer answer) { return kNames[static_cast<size_t>(answer)]; }

std::string message_of(const std::vector<Answer>& missing) {
  std::vector<std::string> words;
  for (const Answer answer : missing)
    words.push_back(fmt::format("{} ({})", in_words(answer), to_string(answer)));
  return fmt::format("needs {}, which this problem doesn't answer", fmt::join(words, ", "));
}

}  // namespace

const char* to_string(Answer answer) { return name_of(answer).name; }

const char* in_words(Answer answer) { return name_of(answer).words; }

const std::vector<Answer>& all_answers() {
  static const std::vector<Answer> all = [] {
    std::vector<Answer> answers;
    for (const Name& name : kNames) answers.push_back(name.answer);
    return answers;
  }();
  return all;
}

Unanswered::Unanswered(const std::vector<Answer>& missing) : ConfigError(message_of(missing)) {}

at::ScalarType Problem::dtype() const { return parameters().parameters().front().tensor.scalar_type(); }

at::Device Problem::device() const { return parameters().parameters().front().tensor.device(); }

std::vector<Answer> missing_answers(const std::vector<Answer>& needed, const Problem& problem) {
  std::vector<Answer> missing;
  for (const Answer answer : needed)
    if (!problem.answers(answer)) missing.push_back(answer);
  return missing;
}

}  // namespace basin
