// defines: Partner, the process that answers, asked one question at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "hessian/outside/hello.h"
#include "hessian/outside/line_channel.h"
#include "hessian/outside/shared_vectors.h"
#include "hessian/parameter_vector.h"

namespace basin {

/// Vectors go through shared memory, words as lines of JSON over a socket (docs/operator-protocol.md). The parameters are
/// the shared memory itself: whoever moves them moves what the next question is asked at, and nothing is sent. An unmoved
/// vector keeps its number, so that the other side may keep what it has made of it.
///
/// Every answer is checked: of the right size, to the question that was asked, and at the problem's own weights, where
/// all answers are finite, no NaN. Away from them one that isn't finite is a result like any other. What fails is a
/// PartnerError, as are the other's end and its silence.
///
/// Cost of a question beyond the answer itself: some 50 us, a copy of v and one of the result; nothing for the weights.
class Partner {
 public:
  /// `words`: a stream socket, closed with the object. `memory`: a memfd; may be closed after. Waits for the hello.
  Partner(int words, int memory, double silence = 60);

  const PartnerHello& hello() const { return hello_; }
  const ParameterVector& parameters() const { return *parameters_; }
  bool answers(Answer answer) const;
  int64_t questions() const { return asked_; }

  // An empty `index` (undefined tensor) is the whole set, else the mean over those examples. Unanswered for what the
  // partner doesn't answer.
  double loss(const at::Tensor& index);
  /// l_i of each of these examples, float64.
  at::Tensor losses(const at::Tensor& index);
  at::Tensor gradient(const at::Tensor& index, double* loss);
  at::Tensor product(const at::Tensor& v, const at::Tensor& index);

  /// A line that asks nothing: progress, an error, the end.
  void say(const std::string& line) { channel_.send(line); }

 private:
  struct Reply {
    double loss;
    int64_t size;
  };
  void look_at_weights();
  int64_t put_batch(const at::Tensor& index);
  Reply ask(Answer question, int64_t batch);
  void check(Answer question, const Reply& reply, const at::Tensor& vector) const;
  at::Tensor vector_of(Answer question, const Reply& reply) const;

  LineChannel channel_;
  PartnerHello hello_;
  SharedVectors vectors_;
  std::unique_ptr<ParameterVector> parameters_;
  at::Tensor own_;        // the weights that the problem came with
  int64_t version_ = -1;  // of the shared weights when they were last looked at
  int64_t number_ = 0;    // of the weights; 0: the problem's own
  int64_t moves_ = 0, asked_ = 0;
};

}  // namespace basin
