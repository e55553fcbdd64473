// defines: ModelTraits, properties of a network that follow from its options.
#pragma once

namespace basin {

struct ModelTraits {
  bool batch_statistics = false;  // normalises by statistics of a batch: Model::has_batch_statistics()
  bool dropout = false;           // draws at random in training: Model::has_dropout()
};

}  // namespace basin
