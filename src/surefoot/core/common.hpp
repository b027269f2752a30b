// Room for what the lanes of a team share. On a GPU, where lanes are threads with memory of their own,
// `gpu/common.hpp` stands in its place.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

namespace surefoot {

// Memory as the system hands it out, zero throughout: where nothing is written, it takes neither time nor room. It
// begins with a line of the cache, so that a register is read from one line and not from two. For vectors that are
// given their size when they are made, and keep it.
template <class A>
struct Untouched {
  using value_type = A;
  static constexpr std::size_t LINE = 64;

  Untouched() = default;
  template <class B>
  Untouched(const Untouched<B>&) {}  // NOLINT(google-explicit-constructor): as allocators convert

  A* allocate(std::size_t n) {
    static_assert(LINE % sizeof(A) == 0);
    void* const room = std::calloc(n + LINE / sizeof(A), sizeof(A));  // NOLINT(*-no-malloc, *-owning-memory)
    if (room == nullptr) throw std::bad_alloc();
    // On the next line, with what was given written before it.
    char* const first = static_cast<char*>(room) + (LINE - reinterpret_cast<std::uintptr_t>(room) % LINE);
    std::memcpy(first - sizeof room, static_cast<const void*>(&room), sizeof room);
    return reinterpret_cast<A*>(first);
  }
  void deallocate(A* first, std::size_t) noexcept {
    void* room = nullptr;
    std::memcpy(static_cast<void*>(&room), reinterpret_cast<char*>(first) - sizeof room, sizeof room);
    std::free(room);  // NOLINT(*-no-malloc, *-owning-memory)
  }
  template <class B>
  void construct(B*) noexcept {}
  template <class B, class... Given>
  void construct(B* at, Given&&... given) {
    ::new (static_cast<void*>(at)) B(std::forward<Given>(given)...);
  }
  bool operator==(const Untouched&) const { return true; }
};
using Zeros = std::vector<double, Untouched<double>>;

template <class A>
using Common = std::vector<A>;

// One for a team, whose lanes write the same into it.
template <class A>
using OfTeam = A;

}  // namespace surefoot
