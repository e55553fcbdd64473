#include "hessian/lanczos_state.h"

#include <ATen/ATen.h>

#include <filesystem>

#include "core/error.h"
#include "hessian/krylov_basis.h"
#include "io/schema.h"

namespace basin {
namespace {

constexpr const char* kLanczosSchema = "basin/lanczos";

at::Tensor on_host(const at::Tensor& tensor) { return tensor.detach().cpu().contiguous(); }

Eigen::MatrixXd to_matrix(const at::Tensor& tensor) {
  // Row-major here, column-major there.
  const at::Tensor columns = tensor.t().contiguous();
  return Eigen::Map<const Eigen::MatrixXd>(columns.const_data_ptr<double>(), tensor.size(0), tensor.size(1));
}

}  // namespace

void write_lanczos_state(const std::string& path, const std::string& key, const LanczosState& state) {
  h5::File file = create_schema_file(path, kLanczosSchema, 2 * static_cast<int64_t>(state.vectors.nbytes()));
  file.set_attribute("key", key);
  file.set_attribute("beta", state.beta);
  file.set_attribute("asymmetry", state.asymmetry);
  file.set_attribute("products_done", state.products_done);
  file.set_attribute("restarts", state.restarts);
  file.set_attribute("breakdowns", state.breakdowns);
  file.set_attribute("search_until", state.search_until);
  file.set_attribute("break_off", state.break_off);
  file.write_tensor("vectors", on_host(state.vectors));
  file.write_tensor("products", on_host(state.products));
  file.write_tensor("remainder", on_host(state.remainder));
  file.write_tensor("projected", to_tensor(state.projected, at::kDouble).contiguous());
  file.write_tensor("coupling", to_tensor(state.coupling, at::kDouble).contiguous());
  file.write_tensor("generator", state.generator);
  file.save();
}

std::optional<LanczosState> read_lanczos_state(const std::string& path, const std::string& key) {
  if (path.empty() || !std::filesystem::exists(path)) return std::nullopt;
  try {
    const h5::File file = open_schema_file(path, kLanczosSchema);
    if (file.attribute_as<std::string>("key") != key) return std::nullopt;
    LanczosState state;
    state.beta = file.attribute_as<double>("beta");
    state.asymmetry = file.attribute_as<double>("asymmetry");
    state.products_done = file.attribute_as<int64_t>("products_done");
    state.restarts = file.attribute_as<int64_t>("restarts");
    state.breakdowns = file.attribute_as<int64_t>("breakdowns");
    state.search_until = file.attribute_as<int64_t>("search_until");
    state.break_off = file.attribute_as<bool>("break_off");
    state.vectors = file.dataset("vectors").read_tensor();
    state.products = file.dataset("products").read_tensor();
    state.remainder = file.dataset("remainder").read_tensor();
    state.projected = to_matrix(file.dataset("projected").read_tensor());
    state.coupling = to_vector(file.dataset("coupling").read_tensor().flatten());
    state.generator = file.dataset("generator").read_tensor();
    return state;
  } catch (const IoError&) {  // it is computed again
    return std::nullopt;
  }
}

}  // namespace basin
