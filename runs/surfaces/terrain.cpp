#include "runs/surfaces/terrain.h"

namespace basin {
namespace {

constexpr const char* kLossError = "landscape-loss-error";  // definition of the columns of standard errors

}  // namespace

std::vector<SurfaceColumn> loss_columns(const std::string& set, const std::string& examples,
                                        const std::string& units) {
  return {
      {set + "_loss", units, "mean loss of the " + examples, "landscape-loss", {}},
      {set + "_loss_error", units, "standard error of the mean loss over the " + examples, kLossError, {}}};
}

bool is_loss_error(const SurfaceColumn& column) { return column.definition == kLossError; }

}  // namespace basin
