// defines: h5::Handle.
#pragma once

#include <cstdint>
#include <utility>

namespace basin::h5 {

/// An HDF5 identifier (hid_t), closed on destruction.
class Handle {
 public:
  Handle() = default;
  explicit Handle(int64_t id) : id_(id) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle();
  int64_t get() const { return id_; }

 private:
  int64_t id_ = -1;
};

}  // namespace basin::h5
