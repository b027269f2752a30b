// In the place of a GPU: the lanes of a warp are fibers of one thread, which a seed puts in order, and blocks come one
// after the other. What CUDA's compiler brings stands here, before the program; the program's kernels are named behind
// it by KERNEL.
//
// Between two of its calls to the others a lane runs alone, so a meeting that is missing shows where another order of
// the lanes gives other numbers. With -fsanitize=thread, whose calls are answered here, it shows in any order: lanes
// that touch the same number, one of them to change it, must have met by __syncwarp in between. Shuffles and votes
// order no memory.
#pragma once
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __shared__ __attribute__((visibility("hidden")))
#define __launch_bounds__(...)
#define __forceinline__ inline
#define UNWATCHED __attribute__((no_sanitize("thread"), noinline))

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int min(int x, int y) { return y < x ? y : x; }

struct Index {
  unsigned x, y;
};
Index threadIdx, blockIdx, blockDim, gridDim;

// A block's shared memory, under the program's name for it.
extern "C" {
alignas(256) __shared__ char block_memory[64 * 1024];
}
asm(".globl _ZN8surefoot3gpu6arenasE\n.hidden _ZN8surefoot3gpu6arenasE\n"
    ".set _ZN8surefoot3gpu6arenasE, block_memory\n");

namespace warp {

constexpr int LANES = 32;
constexpr size_t STACK = 1 << 20;

enum Call { syncwarp, shfl, shfl_xor, ballot, any };
constexpr const char* NAMES[] = {"syncwarp", "shfl", "shfl_xor", "ballot", "any"};

// What lanes call together: the same, of the same lanes.
struct Meeting {
  Call call;
  unsigned mask;
  int width;
};

struct Lane {
  enum { fresh, ready, waiting, done } state;
  jmp_buf here;
  Meeting at;
  int from;                // the lane whose value is asked for
  uint64_t given, answer;  // to a call, and by it
};

Lane lanes[LANES];
alignas(64) char stacks[LANES][STACK];
ucontext_t outside;
jmp_buf scheduler;
void (*work)();
uint64_t order;  // of the lanes: the state of a generator
char trouble[2048];

UNWATCHED inline int self() { return static_cast<int>(threadIdx.x % LANES); }

UNWATCHED unsigned any_number() {
  order = order * 6364136223846793005ULL + 1442695040888963407ULL;
  return static_cast<unsigned>(order >> 33);
}

template <class... Given>
UNWATCHED void report(const char* format, Given... given) {
  const size_t used = strlen(trouble);
  snprintf(trouble + used, sizeof trouble - used, format, given...);
}

[[noreturn]] UNWATCHED void give_up() { _longjmp(scheduler, 1); }

// Who has touched which numbers, and when.
namespace watch {

constexpr size_t GRAIN = 4;        // bytes that are watched together
constexpr size_t CELLS = 1 << 15;  // one that another address needs forgets its own
struct Cell {
  uintptr_t where;
  uint64_t warp;
  unsigned writers, readers;  // the last ones
  unsigned written[LANES], read[LANES];
  char values[LANES][GRAIN];
};

Cell cells[CELLS];
uint64_t warps;                // so far
unsigned times[LANES][LANES];  // of every lane, as far as every lane knows it
struct {
  uintptr_t where;
  size_t size;
  const void* code;
  char old[4096];
} pending;  // a write that is announced, and not seen in memory yet

UNWATCHED void forget() {
  ++warps;
  memset(times, 0, sizeof times);
  for (int l = 0; l < LANES; ++l) times[l][l] = 1;
  pending.size = 0;
}

UNWATCHED Cell& cell_of(uintptr_t where) {
  Cell& cell = cells[(where >> 2 ^ where >> 17 ^ (where & 3) << 13) % CELLS];
  if (cell.where != where || cell.warp != warps) {
    cell.where = where;
    cell.warp = warps;
    cell.writers = cell.readers = 0;
  }
  return cell;
}

UNWATCHED bool is_known(int lane, unsigned time) { return lane == self() || times[self()][lane] >= time; }

UNWATCHED bool is_own(uintptr_t where) {
  const auto first = reinterpret_cast<uintptr_t>(stacks);
  return where >= first && where < first + sizeof stacks;
}

UNWATCHED void collide(const char* what, int other, uintptr_t where, const void* code) {
  const auto first = reinterpret_cast<uintptr_t>(block_memory);
  const bool is_shared = where - first < sizeof block_memory;
  report("lane %d of block %u %s lane %d, which it has not met since (byte %zu of %s; code %p)", self(), blockIdx.x,
         what, other, is_shared ? where - first : where, is_shared ? "shared memory" : "memory", code);
  give_up();
}

// Several may write the same without having met, and what changes nothing is no news.
UNWATCHED void finish_write() {
  const size_t size = pending.size, step = size < GRAIN ? size : GRAIN;
  pending.size = 0;
  for (size_t i = 0; i < size; i += step) {
    const auto value = reinterpret_cast<const char*>(pending.where + i);
    Cell& cell = cell_of(pending.where + i);
    if (memcmp(pending.old + i, value, step) != 0) {
      for (int l = 0; l < LANES; ++l) {
        const bool is_reader = (cell.readers >> l & 1U) != 0;
        if (is_reader && !is_known(l, cell.read[l]))
          collide("writes what was read by", l, pending.where + i, pending.code);
        if (is_known(l, cell.written[l])) cell.writers &= ~(1U << l);
      }
      cell.readers = 0;
    } else if (cell.writers == 0) {
      continue;  // whoever wrote it is forgotten
    }
    cell.writers |= 1U << self();
    cell.written[self()] = times[self()][self()];
    memcpy(cell.values[self()], value, step);
  }
}

UNWATCHED void write(const void* to, size_t size, const void* code) {
  finish_write();
  const auto where = reinterpret_cast<uintptr_t>(to);
  if (is_own(where)) return;
  if (size > sizeof pending.old) {
    report("a write of %zu bytes at once", size);
    give_up();
  }
  pending.where = where;
  pending.size = size;
  pending.code = code;
  memcpy(pending.old, to, size);
}

// What was written last must be known, and be what all wrote that have written it last.
UNWATCHED void read(const void* from, size_t size, const void* code) {
  const auto first = reinterpret_cast<uintptr_t>(from);
  if (is_own(first)) return;
  // Where numbers are copied, the write is announced before the read.
  if (first < pending.where + pending.size && pending.where < first + size) finish_write();
  const size_t step = size < GRAIN ? size : GRAIN;
  for (uintptr_t where = first; where < first + size; where += step) {
    Cell& cell = cell_of(where);
    int unknown = -1;
    bool is_any_known = cell.writers == 0;
    for (int l = 0; l < LANES; ++l) {
      if ((cell.writers >> l & 1U) == 0) continue;
      const bool is_seen = memcmp(cell.values[l], reinterpret_cast<const char*>(where), step) == 0;
      if (!is_seen) collide("reads what was written otherwise by", l, where, code);
      if (is_known(l, cell.written[l]))
        is_any_known = true;
      else
        unknown = l;
    }
    if (!is_any_known) collide("reads what was written by", unknown, where, code);
    cell.readers |= 1U << self();
    cell.read[self()] = times[self()][self()];
  }
}

// These lanes have met: each knows what all of them knew.
UNWATCHED void meet(unsigned mask) {
  unsigned all[LANES] = {};
  for (int l = 0; l < LANES; ++l) {
    for (int k = 0; k < LANES && (mask >> l & 1U) != 0; ++k) all[k] = times[l][k] > all[k] ? times[l][k] : all[k];
  }
  for (int l = 0; l < LANES; ++l) {
    if ((mask >> l & 1U) == 0) continue;
    memcpy(times[l], all, sizeof all);
    ++times[l][l];
  }
}

}  // namespace watch

UNWATCHED void leave() {
  watch::finish_write();
  _longjmp(scheduler, 2);
}

// Answers a call for which all of its lanes have come; those that have ended are not waited for.
UNWATCHED void answer(const Meeting& at) {
  unsigned votes = 0;
  for (int l = 0; l < LANES; ++l) {
    if ((at.mask >> l & 1U) == 0 || lanes[l].state == Lane::done) continue;
    const Meeting& other = lanes[l].at;
    if (lanes[l].state != Lane::waiting || other.call != at.call || other.mask != at.mask || other.width != at.width)
      return;
    if (lanes[l].given != 0) votes |= 1U << l;
  }
  for (int l = 0; l < LANES; ++l) {
    if ((at.mask >> l & 1U) == 0 || lanes[l].state == Lane::done) continue;
    const int from = lanes[l].from;
    if (at.call == ballot || at.call == any) {
      lanes[l].answer = votes;
    } else if (at.call != syncwarp) {
      if ((at.mask >> from & 1U) == 0 || lanes[from].state == Lane::done) {
        report("lane %d asks lane %d, which is not there, in %s of %08x", l, from, NAMES[at.call], at.mask);
        give_up();
      }
      lanes[l].answer = lanes[from].given;
    }
  }
  for (int l = 0; l < LANES; ++l) {
    if ((at.mask >> l & 1U) != 0 && lanes[l].state == Lane::waiting) lanes[l].state = Lane::ready;
  }
  if (at.call == syncwarp) watch::meet(at.mask);
}

UNWATCHED uint64_t call(const Meeting& at, uint64_t given = 0, int from = 0) {
  Lane& lane = lanes[self()];
  if ((at.mask >> self() & 1U) == 0) {
    report("lane %d calls %s of %08x, to which it does not belong", self(), NAMES[at.call], at.mask);
    give_up();
  }
  lane.at = at;
  lane.given = given;
  lane.from = from;
  lane.state = Lane::waiting;
  answer(at);
  if (_setjmp(lane.here) == 0) leave();
  return lane.answer;
}

UNWATCHED void begin() {
  work();
  lanes[self()].state = Lane::done;
  for (const Lane& other : lanes) {
    if (other.state == Lane::waiting) answer(other.at);
  }
  leave();
}

UNWATCHED void go_on(int lane) {
  threadIdx.x = threadIdx.x / LANES * LANES + static_cast<unsigned>(lane);
  Lane& one = lanes[lane];
  if (one.state == Lane::ready) _longjmp(one.here, 1);
  one.state = Lane::ready;
  ucontext_t start;
  getcontext(&start);
  start.uc_stack.ss_sp = stacks[lane];
  start.uc_stack.ss_size = STACK;
  start.uc_link = &outside;
  makecontext(&start, begin, 0);
  setcontext(&start);
}

// Plays a warp to its end, or as far as it comes.
UNWATCHED bool play_warp(unsigned threads) {
  for (unsigned l = 0; l < LANES; ++l) lanes[l].state = l < threads ? Lane::fresh : Lane::done;
  watch::forget();
  // Either any lane goes on, or always the first one in some order that can: it runs ahead as far as possible.
  const bool is_ranked = any_number() % 2 == 0;
  int ranks[LANES];
  for (int l = 0; l < LANES; ++l) {
    const int at = static_cast<int>(any_number() % static_cast<unsigned>(l + 1));
    ranks[l] = ranks[at];
    ranks[at] = l;
  }
  if (_setjmp(scheduler) == 1) return false;
  int can[LANES], many = 0, left = 0;
  for (const int l : ranks) {
    if (lanes[l].state == Lane::fresh || lanes[l].state == Lane::ready) can[many++] = l;
    if (lanes[l].state != Lane::done) ++left;
  }
  if (many > 0) go_on(can[is_ranked ? 0 : any_number() % static_cast<unsigned>(many)]);
  if (left == 0) return true;
  report("lanes of block %u wait for others that do not come:", blockIdx.x);
  for (int l = 0; l < LANES; ++l) {
    if (lanes[l].state == Lane::waiting) report(" %d in %s of %08x,", l, NAMES[lanes[l].at.call], lanes[l].at.mask);
  }
  return false;
}

// Returns what went wrong, or nullptr.
UNWATCHED const char* launch(Index grid, unsigned threads, uint64_t seed, size_t shared, void (*kernel)()) {
  work = kernel;
  order = seed;
  trouble[0] = 0;
  gridDim = grid;
  blockDim = {threads, 1};
  for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y) {
    for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) {
      memset(block_memory, 0xFF, sizeof block_memory);  // not numbers
      for (unsigned first = 0; first < threads; first += LANES) {
        threadIdx = {first, 0};
        if (!play_warp(threads - first)) return trouble;
      }
      for (size_t at = shared; at < sizeof block_memory; ++at) {
        if (block_memory[at] == '\xFF') continue;
        report("block %u has written to byte %zu of %zu of its shared memory", blockIdx.x, at, shared);
        return trouble;
      }
    }
  }
  return nullptr;
}

struct Now {
  template <class... A>
  Now(void (*kernel)(A...), A... given) {
    kernel(given...);
  }
};

template <class A>
UNWATCHED A next(void**& given) {
  return *static_cast<A*>(*given++);
}

// Braces, for they are read from left to right.
template <class... A>
void call_with(void (*kernel)(A...), void** given) {
  Now{kernel, next<A>(given)...};
}

}  // namespace warp

inline void __syncwarp(unsigned mask = ~0U) { warp::call({warp::syncwarp, mask, 0}); }

template <class A>
A asked(const warp::Meeting& at, A own, int from) {
  uint64_t given = 0;
  static_assert(sizeof(A) <= sizeof given);
  memcpy(&given, &own, sizeof own);
  given = warp::call(at, given, from);
  memcpy(&own, &given, sizeof own);
  return own;
}
template <class A>
A __shfl_sync(unsigned mask, A own, int from, int width = 32) {
  return asked({warp::shfl, mask, width}, own, (warp::self() & ~(width - 1)) + (from & (width - 1)));
}
template <class A>
A __shfl_xor_sync(unsigned mask, A own, int apart, int width = 32) {
  const int self = warp::self(), from = self ^ apart;
  return asked({warp::shfl_xor, mask, width}, own, from / width > self / width ? self : from);
}
inline unsigned __ballot_sync(unsigned mask, bool vote) {
  return static_cast<unsigned>(warp::call({warp::ballot, mask, 0}, vote ? 1 : 0));
}
inline int __any_sync(unsigned mask, bool vote) { return warp::call({warp::any, mask, 0}, vote ? 1 : 0) != 0; }

[[noreturn]] inline void __trap() {
  warp::report("lane %d of block %u trapped", warp::self(), blockIdx.x);
  warp::give_up();
}

#define KERNEL(name)                                                                                           \
  void** given_to_##name;                                                                                      \
  extern "C" const char* launch_##name(unsigned x, unsigned y, unsigned threads, uint64_t seed, size_t shared, \
                                       void** given) {                                                         \
    given_to_##name = given;                                                                                   \
    return warp::launch({x, y}, threads, seed, shared, [] { warp::call_with(name, given_to_##name); });        \
  }

#ifdef __SANITIZE_THREAD__
#define WATCHED(size)                                                                                                 \
  extern "C" UNWATCHED void __tsan_read##size(void* at) { warp::watch::read(at, size, __builtin_return_address(0)); } \
  extern "C" UNWATCHED void __tsan_write##size(void* at) { warp::watch::write(at, size, __builtin_return_address(0)); }
WATCHED(1)
WATCHED(2)
WATCHED(4)
WATCHED(8)
WATCHED(16)
extern "C" UNWATCHED void __tsan_read_range(void* at, size_t size) {
  warp::watch::read(at, size, __builtin_return_address(0));
}
extern "C" UNWATCHED void __tsan_write_range(void* at, size_t size) {
  warp::watch::write(at, size, __builtin_return_address(0));
}
extern "C" UNWATCHED void __tsan_init() {}
extern "C" UNWATCHED void __tsan_func_entry(void*) {}
extern "C" UNWATCHED void __tsan_func_exit() {}
#endif
