// Many runs at once: each is played by a team of lanes, with the core's own policies and loop.
//
// The host compiles it for one POLICY, RADIUS and DIM, for rows that are fixed or not (IS_FIXED), and for TEAM lanes a
// run, of which a BLOCK holds whole teams.
#include "arena.hpp"
#include "clucb.hpp"
#include "clucb2.hpp"
#include "engine.hpp"
#include "lucb.hpp"
#include "philox.hpp"
#include "safe_lucb.hpp"
#include "warp_team.hpp"

namespace surefoot::gpu {

// One run of one policy, as the host writes it down.
struct Task {
  LinearSettings settings;
  const double *features, *means;
  const std::int64_t* baselines;
  const double* draws;
  double *kept, *learned;
  double scale;
  int rewards;
  int is_told;
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
};

// The host writes them as bytes.
static_assert(sizeof(Task) == TASK_BYTES && sizeof(Rounds) == ROUNDS_BYTES);

// Where this lane may take memory: a stretch of its own, and that of its team.
inline void set_up(const Rounds& all) {
  const std::size_t lane = static_cast<std::size_t>(blockIdx.x) * BLOCK + threadIdx.x;
  const std::size_t lanes = static_cast<std::size_t>(gridDim.x) * BLOCK;
  char *own = all.memory + lane * all.lane_room,
       *shared = all.memory + lanes * all.lane_room + lane / TEAM * all.team_room;
  arena_of(Room::own) = {own, own + all.lane_room};
  arena_of(Room::team) = {shared, shared + all.team_room};
}

// What a run ends with, beside its counts: the numbers in which any rounding of any round would show, in the order of
// `learned_by` in `surefoot.simulation.engine`: theta, M row by row, b, z, v and w, and the UCB of the last proposal.
template <int D>
void write_learned(const LinearState<D>& state, const Record<D>& record, double* out) {
  const auto write = [&](double number) { *out++ = number; };
  for (int i = 0; i < D; ++i) write(state.ridge.theta[i]);
  for (int i = 0; i < D; ++i) {
    const auto row = state.ridge.whitener.row(i);
    for (int j = 0; j < D; ++j) write(row[j]);
  }
  for (const SumVector<D>* sums :
       {&state.ridge.moment, &state.ledger.played, &state.ledger.displaced, &state.ledger.conserved}) {
    for (int i = 0; i < D; ++i) write(sums->value[i] + sums->carry[i]);
  }
  write(record.optimism);
}

template <class P>
std::int64_t play_run(const Task& task, const Rounds& all, const WarpTeam<TEAM>& team) {
  Player<P> player{typename P::State(P::Dim, task.settings), typename P::Record(P::Dim), {}};
  if constexpr (IS_FIXED) {
    Catalogue<P::Dim>& catalogue = player.state.catalogue.emplace();
    catalogue.copy({task.features, all.actions, P::Dim});
    team.meet();  // all lanes write the rows of their team, and none may read them before
    catalogue.begin(player.state.scoring());
  }
  Tally tally(std::vector<double>(all.watched, all.watched + all.watched_count));
  team.meet();  // what one lane still sets up, another must not read
  const Block block{all.rounds,
                    all.actions,
                    P::Dim,
                    IS_FIXED,
                    IS_FIXED,
                    task.features,
                    task.means,
                    task.draws,
                    task.baselines,
                    nullptr,
                    false,
                    task.is_told != 0,
                    static_cast<Rewards>(task.rewards),
                    task.scale,
                    IS_FIXED};
  const Checkpoints points{all.checkpoints, all.checkpoint_count, task.kept};
  const std::int64_t failed = player.play(block, tally, points, nullptr, team);
  write_learned(player.state, player.record, task.learned);
  return failed;
}

}  // namespace surefoot::gpu

using namespace surefoot;
using namespace surefoot::gpu;

extern "C" __global__ void __launch_bounds__(BLOCK)
    play(const Task* tasks, int count, const Rounds* rounds, std::int64_t* failed) {
  const Rounds all = *rounds;
  set_up(all);
  // Lanes that are left over play the last run once more, so that every warp is whole.
  const int run = min(static_cast<int>((blockIdx.x * BLOCK + threadIdx.x) / TEAM), count - 1);
  failed[run] = play_run<POLICY<DIM>>(tasks[run], all, WarpTeam<TEAM>::here());
}

// The randomness of every round of a run, as `RoundDraws` has it.
extern "C" __global__ void draw(const std::uint64_t* seeds, int is_normal, int rounds, double* out) {
  const int run = static_cast<int>(blockIdx.y), t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (t >= rounds) return;
  const Place place{seeds[run], 0, 0, static_cast<std::uint64_t>(t)};
  out[static_cast<std::ptrdiff_t>(run) * rounds + t] = is_normal != 0 ? normal_at(place) : uniform_at(place);
}
