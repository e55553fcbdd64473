#include "io/unsealed.h"

#include <filesystem>

#include "core/error.h"
#include "core/files.h"
#include "io/damaged.h"
#include "io/in_child.h"
#include "io/schema.h"

namespace basin {
namespace {

double seconds_for(uintmax_t bytes) { return 10 + static_cast<double>(bytes) / 1e7; }

/// Types that Basin doesn't write are another program's affair.
void read(const h5::DataSet& dataset) {
  (void)dataset.attributes();
  for (int64_t axis = 0; axis < static_cast<int64_t>(dataset.shape().size()); ++axis)
    (void)dataset.scale_paths(axis);
  if (dataset.is_text())
    (void)dataset.read_texts();
  else if (dataset.is_number())
    (void)dataset.read_tensor();
}

/// `around`: the groups that this one was reached through. A link back to one of them has no end.
void read(const h5::Group& group, std::vector<const h5::Group*> around = {}) {
  for (const h5::Group* outer : around)
    if (group.is_same_as(*outer))
      throw DamagedError(
          fmt::format("{}: the link {} leads back to {}", group.file(), group.path(), outer->path()));
  (void)group.attributes();
  for (const std::string& name : group.dataset_names()) read(group.dataset(name));
  around.push_back(&group);
  for (const std::string& name : group.group_names()) read(group.group(name), around);
}

/// The file without a user block, or with the one that it has, as HDF5 lays out one of 512 bytes.
std::string with_empty_block(const std::string& path) {
  const std::string bytes = read_file(path);
  const std::string_view view = bytes;
  const size_t content = view.starts_with(kHdf5Signature) ? 0 : kSealBytes;
  if (content > 0 && !(view.size() > content && view.substr(content).starts_with(kHdf5Signature)))
    throw DamagedError(
        fmt::format("{}: truncated, damaged or not an HDF5 file ({} bytes)", path, bytes.size()));
  return std::string(kSealBytes, '\0').append(view.substr(content));
}

/// The content of a moved file counts its addresses from a wrong place until libhdf5 has opened it to write.
std::string settle(const std::string& temporary) {
  const h5::File file = h5::File::open_unchecked(temporary, true);
  schema_of(file);
  read(file);
  return file.seal().kind + '\n' + file.seal().label + '\n' + std::to_string(file.seal().update);
}

Seal parse(const std::string& text) {
  const size_t first = text.find('\n'), second = text.find('\n', first + 1);
  return {text.substr(0, first), text.substr(first + 1, second - first - 1),
          std::stoll(text.substr(second + 1))};
}

}  // namespace

namespace h5 {

// Here and not in h5.cpp, which survey() is made of.
File File::open(const std::string& path) {
  if (!check_seal(path)) survey(path);
  return open_unchecked(path);
}

}  // namespace h5

void survey(const std::string& path) {
  in_child(path, seconds_for(std::filesystem::file_size(path)), [&] {
    read(h5::File::open_unchecked(path));
    return std::string();
  });
}

Seal reseal(const std::string& path) {
  const std::string moved = with_empty_block(path);
  Seal seal;
  replace_file_atomically(path, [&](const std::string& temporary) {
    write_file(temporary, moved);
    seal = parse(in_child(path, seconds_for(moved.size()), [&] { return settle(temporary); }));
    std::string bytes = read_file(temporary);
    seal_block(seal, std::string_view(bytes).substr(kSealBytes)).copy(bytes.data(), kSealBytes);
    write_file(temporary, bytes);
  });
  return seal;
}

}  // namespace basin
