// Many runs at once: each is played by a team of lanes, with the core's own policies and loop.
#include "arena.hpp"
#include "arranged_rows.hpp"
#include "engine.hpp"
#include "learned.hpp"
#include "paper_policy.hpp"
#include "philox.hpp"
#include "safe_lucb.hpp"
#include "slices.hpp"
#include "warp_team.hpp"

namespace surefoot::gpu {

// One run of one policy, as the host writes it down.
struct Task {
  LinearSettings settings;
  const double *features, *columns, *means;
  const std::int64_t* baselines;
  const double* draws;
  double *kept, *learned;
  double scale;
  int rewards;
  int is_told;
  std::int64_t which;  // of the policies that are one program
};

// What all runs have in common.
struct Rounds {
  int rounds, actions;
  const std::int64_t* checkpoints;
  int checkpoint_count;
  const double* watched;
  int watched_count;
  char* memory;  // of all lanes, then of all teams
  std::size_t lane_room, team_room;
  int groups;                // of runs that are played by one block
  int slices;                // of their rounds: a group that had one waits its turn for the next
  unsigned *tickets, *done;  // turns that were taken, and slices that every group has behind it
};

// The host writes them as bytes.
static_assert(sizeof(Task) == TASK_BYTES && sizeof(Rounds) == ROUNDS_BYTES);

// Of which run a lane of a group plays a part. Lanes that are left over play the last run once more: a warp is whole.
inline int run_of(int group, int count) {
  return min(static_cast<int>((group * BLOCK + threadIdx.x) / TEAM), count - 1);
}

// Where a lane of a group may take memory: a stretch of its own, and that of its team.
inline void set_up(const Rounds& all, int group) {
  const std::size_t lane = static_cast<std::size_t>(group) * BLOCK + threadIdx.x;
  const std::size_t lanes = static_cast<std::size_t>(all.groups) * BLOCK;
  char *own = all.memory + lane * all.lane_room,
       *shared = all.memory + lanes * all.lane_room + lane / TEAM * all.team_room;
  arena_of(Room::own) = {own, own + all.lane_room};
  arena_of(Room::team) = {shared, shared + all.team_room};
}

// Everything takes its room in the same order in every slice, and so finds what it left there.
template <class P>
void play_slice(const Task& task, const Rounds& all, int slice, std::int64_t* failed, const WarpTeam<TEAM>& team) {
  using Slot = Kept<P>;
  Player<P> player{typename P::State(P::Dim, task.settings), typename P::Record(P::Dim), {}};
  if constexpr (requires { player.state.which; }) player.state.which = static_cast<Which>(task.which);
  const Rows<P::Dim> rows{task.features, all.actions, P::Dim};
  if constexpr (IS_FIXED) {
    Catalogue<P::Dim>& catalogue = player.state.catalogue.emplace();
    catalogue.values.refer_to(task.features, static_cast<std::size_t>(rows.count) * P::Dim);
    catalogue.dim = P::Dim;
    catalogue.columns.actions = rows.count;
    catalogue.columns.places = padded(rows.count);
    catalogue.columns.values.refer_to(task.columns, numbers_for(rows.count));
    if constexpr (requires { catalogue.find_room(); }) catalogue.find_room();
    if (slice == 0) catalogue.begin(player.state.scoring());
  }
  Tally tally(std::vector<double>(all.watched, all.watched + all.watched_count));
  Slot* const kept = static_cast<Slot*>(take_room<Room::own>(sizeof(Slot)));
  if (slice == 0) {
    if (all.slices > 1) ::new (kept) Slot(player.state, tally);
  } else {
    kept->restore(player.state, tally);
  }
  team.meet();  // what one lane still sets up, another must not read
  const int length = (all.rounds + all.slices - 1) / all.slices, from = slice * length;
  const Block block{min(length, all.rounds - from),
                    all.actions,
                    P::Dim,
                    IS_FIXED,
                    IS_FIXED,
                    task.features,
                    task.means,
                    task.draws + from,
                    task.baselines + from,
                    nullptr,
                    false,
                    task.is_told != 0,
                    static_cast<Rewards>(task.rewards),
                    task.scale,
                    IS_FIXED};
  const Checkpoints points{all.checkpoints, all.checkpoint_count, task.kept};
  *failed = player.play(block, tally, points, nullptr, team);
  if (slice + 1 < all.slices) {
    kept->keep(player.state, tally);
  } else {
    write_learned(player.state, player.record, task.learned);
  }
}

// Takes the next turn. Whoever has an earlier one is at work or done, so nobody waits for a block that has not begun.
inline unsigned next_turn(const Rounds& all) {
  const unsigned taken = threadIdx.x == 0 ? atomicAdd(all.tickets, 1U) : 0U;
  return __shfl_sync(~0U, taken, 0);
}

inline void await(const unsigned* done, unsigned slices) {
  while (*const_cast<const volatile unsigned*>(done) < slices) __nanosleep(100);
  __threadfence();  // and sees what was kept
}

inline void tell(unsigned* done) {
  __threadfence();
  __syncwarp();
  if (threadIdx.x == 0) atomicAdd(done, 1U);
}

}  // namespace surefoot::gpu

using namespace surefoot;
using namespace surefoot::gpu;

extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS)
    play(const Task* tasks, int count, const Rounds* rounds, std::int64_t* failed) {
  const Rounds all = *rounds;
  const unsigned turn = next_turn(all);
  const int group = static_cast<int>(turn) % all.groups, slice = static_cast<int>(turn) / all.groups;
  const int at = run_of(group, count);
  await(all.done + group, static_cast<unsigned>(slice));
  set_up(all, group);
  play_slice<POLICY<DIM>>(tasks[at], all, slice, failed + at, WarpTeam<TEAM>::here());
  tell(all.done + group);
}

// The rows of every run, in the order in which all its policies read them.
extern "C" __global__ void arrange(const double* features, int actions, int runs, std::int64_t apart, double* out) {
  const int run = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (run >= runs) return;
  arrange_rows({features + static_cast<std::ptrdiff_t>(run) * actions * DIM, actions, DIM}, out + run * apart);
}

// The randomness of every round of a run, as `RoundDraws` has it.
extern "C" __global__ void draw(const std::uint64_t* seeds, int is_normal, int rounds, std::int64_t first,
                                double* out) {
  const int run = static_cast<int>(blockIdx.y), t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (t >= rounds) return;
  const Place place{seeds[run], 0, 0, static_cast<std::uint64_t>(first + t)};
  out[static_cast<std::ptrdiff_t>(run) * rounds + t] = is_normal != 0 ? normal_at(place) : uniform_at(place);
}
