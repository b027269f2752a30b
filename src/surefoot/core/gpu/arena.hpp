// Memory of the lanes of a GPU: a stretch for each, and one for each team, taken from front to back.
#pragma once
#include <cstddef>

namespace surefoot::gpu {

struct Arena {
  char *next, *last;
};

inline constexpr std::size_t GRAIN = 32;  // bytes: what four numbers that are read at once need

// Of this lane: its own, and its copy of the team's, which all lanes move alike.
inline Arena& arena_of(bool is_shared) {
  extern __shared__ Arena arenas[];
  return arenas[2 * threadIdx.x + (is_shared ? 1 : 0)];
}

inline std::size_t whole_grains(std::size_t size) { return (size + GRAIN - 1) / GRAIN * GRAIN; }

template <bool Shared>
void* take_room(std::size_t size) {
  Arena& arena = arena_of(Shared);
  char* found = arena.next;
  if (static_cast<std::size_t>(arena.last - found) < whole_grains(size)) __trap();  // the host hears of it
  arena.next = found + whole_grains(size);
  return found;
}

// Whatever was taken last can be had again; what lies before it stays until the kernel ends.
template <bool Shared>
void give_back(void* first, std::size_t size) {
  Arena& arena = arena_of(Shared);
  if (first != nullptr && static_cast<char*>(first) + whole_grains(size) == arena.next) {
    arena.next = static_cast<char*>(first);
  }
}

}  // namespace surefoot::gpu
