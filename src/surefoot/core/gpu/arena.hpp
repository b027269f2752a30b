// Memory of the lanes of a GPU: a stretch for each, and one for each team, taken from front to back.
#pragma once
#include <cstddef>

namespace surefoot::gpu {

struct Arena {
  char *next, *last;
};

inline constexpr std::size_t GRAIN = 32;  // bytes: what four numbers that are read at once need

enum class Room { own, team, count };
inline constexpr int ROOMS = static_cast<int>(Room::count);

// Of this lane; that of its team is a copy, which all lanes move alike.
inline Arena& arena_of(Room where) {
  extern __shared__ Arena arenas[];
  return arenas[ROOMS * threadIdx.x + static_cast<int>(where)];
}

inline std::size_t whole_grains(std::size_t size) { return (size + GRAIN - 1) / GRAIN * GRAIN; }

template <Room Where>
void* take_room(std::size_t size) {
  Arena& arena = arena_of(Where);
  char* found = arena.next;
  if (static_cast<std::size_t>(arena.last - found) < whole_grains(size)) __trap();  // the host hears of it
  arena.next = found + whole_grains(size);
  return found;
}

// Whatever was taken last can be had again; what lies before it stays until the kernel ends.
template <Room Where>
void give_back(void* first, std::size_t size) {
  Arena& arena = arena_of(Where);
  if (first != nullptr && static_cast<char*>(first) + whole_grains(size) == arena.next) {
    arena.next = static_cast<char*>(first);
  }
}

}  // namespace surefoot::gpu
