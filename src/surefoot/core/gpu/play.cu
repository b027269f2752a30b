// Many runs at once: each is played by a team of lanes, with the core's own policies and loop.
#include "arena.hpp"
#include "engine.hpp"
#include "paper_policy.hpp"
#include "philox.hpp"
#include "safe_lucb.hpp"
#include "warp_team.hpp"

namespace surefoot::gpu {

// One run of one policy, as the host writes it down.
struct Task {
  LinearSettings settings;
  const double *features, *columns, *means;
  const std::int64_t* baselines;
  const double* draws;
  double* kept;
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
};

// The host writes them as bytes.
static_assert(sizeof(Task) == TASK_BYTES && sizeof(Rounds) == ROUNDS_BYTES);

inline std::size_t column_numbers(int actions) { return static_cast<std::size_t>(padded(actions)) * DIM; }

template <class P>
void play_task(const Task& task, const Rounds& all, std::int64_t* failed, const WarpTeam<TEAM>& team) {
  Player<P> player{typename P::State(P::Dim, task.settings), typename P::Record(P::Dim), {}};
  if constexpr (requires { player.state.which; }) player.state.which = static_cast<Which>(task.which);
  const Rows<P::Dim> rows{task.features, all.actions, P::Dim};
  if constexpr (IS_FIXED) {
    Catalogue<P::Dim>& catalogue = player.state.catalogue.emplace();
    catalogue.values.refer_to(task.features, static_cast<std::size_t>(rows.count) * P::Dim);
    catalogue.dim = P::Dim;
    catalogue.columns.actions = rows.count;
    catalogue.columns.places = padded(rows.count);
    catalogue.columns.values.refer_to(task.columns, column_numbers(rows.count));
    catalogue.begin(player.state.scoring());
  }
  team.meet();  // what one lane still sets up, another must not read
  Tally tally(std::vector<double>(all.watched, all.watched + all.watched_count));
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
                    task.scale};
  const Checkpoints points{all.checkpoints, all.checkpoint_count, task.kept};
  *failed = player.play(block, tally, points, nullptr, team);
}

// Where this lane may take memory: a stretch of its own, and that of its team.
inline void set_up(const Rounds& all) {
  const std::size_t lane = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::size_t lanes = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  char *own = all.memory + lane * all.lane_room,
       *shared = all.memory + lanes * all.lane_room + lane / TEAM * all.team_room;
  arena_of(Room::own) = {own, own + all.lane_room};
  arena_of(Room::team) = {shared, shared + all.team_room};
}

}  // namespace surefoot::gpu

using namespace surefoot;
using namespace surefoot::gpu;

extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS)
    play(const Task* tasks, int count, const Rounds* rounds, std::int64_t* failed) {
  const Rounds all = *rounds;
  // Lanes that are left over play the last run once more: a warp is whole.
  const int at = min(static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / TEAM), count - 1);
  set_up(all);
  play_task<POLICY<DIM>>(tasks[at], all, failed + at, WarpTeam<TEAM>::here());
}

// The rows of every run as columns, which all its policies read.
extern "C" __global__ void arrange(const double* features, int actions, int runs, std::int64_t apart, double* out) {
  const int run = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (run >= runs) return;
  Columns<DIM> columns;
  columns.values.refer_to(out + run * apart, column_numbers(actions));
  columns.assign({features + static_cast<std::ptrdiff_t>(run) * actions * DIM, actions, DIM});
}

// The randomness of every round of a run, as `RoundDraws` has it.
extern "C" __global__ void draw(const std::uint64_t* seeds, int is_normal, int rounds, std::int64_t first,
                                double* out) {
  const int run = static_cast<int>(blockIdx.y), t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (t >= rounds) return;
  const Place place{seeds[run], 0, 0, static_cast<std::uint64_t>(first + t)};
  out[static_cast<std::ptrdiff_t>(run) * rounds + t] = is_normal != 0 ? normal_at(place) : uniform_at(place);
}
