// A state that cannot be one. On a GPU, where none is read, `gpu/damage.hpp` stands in its place.
#pragma once
#include <stdexcept>

namespace surefoot {

// The Python side turns it into a StateError.
struct DamagedState : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] inline void damaged(const char* why) { throw DamagedState(why); }

}  // namespace surefoot
