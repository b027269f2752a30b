// Rewards around a mean.
#pragma once

namespace surefoot {

enum class Rewards { gaussian, bernoulli, bounded };

// The reward with this mean for one draw: standard normal for Gaussian rewards, else uniform.
inline double reward_of(Rewards kind, double scale, double mean, double draw) {
  if (kind == Rewards::gaussian) return mean + scale * draw;
  if (kind == Rewards::bernoulli) return draw < mean ? 1.0 : 0.0;
  // Narrower near 0 and 1: cutting rewards off there would move their mean.
  const double room = mean < 1.0 - mean ? mean : 1.0 - mean;
  return mean + (scale < room ? scale : room) * (2.0 * draw - 1.0);
}

}  // namespace surefoot
