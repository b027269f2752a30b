// Draws that are a function of where they are used, so that round t of run r is the same on any thread or machine.
// Philox 4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
#pragma once
#include <array>
#include <bit>
#include <cstdint>

#include "elementary.hpp"

namespace surefoot {

using Counter = std::array<std::uint32_t, 4>;
using Key = std::array<std::uint32_t, 2>;

// Ten rounds of multiplying and crossing over: a keyed bijection of 128 bits.
constexpr Counter philox(Counter counter, Key key) {
  for (int i = 0; i < 10; ++i) {
    const std::uint64_t first = 0xD2511F53ULL * counter[0], second = 0xCD9E8D57ULL * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(first)};
    key = {key[0] + 0x9E3779B9U, key[1] + 0xBB67AE85U};
  }
  return counter;
}

// Where a number is drawn. Streams tell apart what is drawn for different purposes in one round.
struct Place {
  std::uint64_t seed;
  std::uint32_t stream, run;
  std::uint64_t round;
};

// 64 bits of their own for every place.
constexpr std::uint64_t bits_at(const Place& at) {
  const Counter counter{static_cast<std::uint32_t>(at.round), static_cast<std::uint32_t>(at.round >> 32), at.run,
                        at.stream};
  const Counter drawn =
      philox(counter, {static_cast<std::uint32_t>(at.seed), static_cast<std::uint32_t>(at.seed >> 32)});
  return static_cast<std::uint64_t>(drawn[1]) << 32 | drawn[0];
}

// Uniform in [0, 1), a multiple of 2^-53.
constexpr double uniform_at(const Place& at) { return static_cast<double>(bits_at(at) >> 11) * 0x1p-53; }

// An odd multiple of 2^-53, which is never 0 or 1.
constexpr double inside_at(const Place& at) {
  // 52 bits as a whole number: to convert them takes an instruction that few vector units have.
  const double whole = std::bit_cast<double>(bits_at(at) >> 12 | 0x4330000000000000ULL) - 0x1p52;
  return (whole + 0.5) * 0x1p-52;
}

// Normal with mean 0 and variance 1.
inline double normal_at(const Place& at) { return normal_quantile(inside_at(at)); }

// Normal draws of consecutive rounds: as if all lay in the middle of the distribution, side by side, then the tails,
// gathered for the same reason.
inline void fill_normals(Place first, double* out, int count) {
  constexpr int GROUP = 256;
  constexpr double FARTHEST = 1e-4;  // what lies closer to 0 or 1 is looked at one by one
  double p[GROUP], outside[GROUP];
  int places[GROUP];
  for (int start = 0; start < count; start += GROUP) {
    const int size = count - start < GROUP ? count - start : GROUP;
    for (int i = 0; i < size; ++i) {
      p[i] = inside_at(first);
      first.round += 1;
    }
    for (int i = 0; i < size; ++i) out[start + i] = middle_quantile(p[i] - 0.5);
    int many = 0;
    for (int i = 0; i < size; ++i) {
      places[many] = i;
      many += std::fabs(p[i] - 0.5) > MIDDLE ? 1 : 0;
    }
    for (int i = 0; i < many; ++i) outside[i] = p[places[i]];
    for (int i = 0; i < many; ++i) p[i] = tail_quantile(tail_of(outside[i]));
    for (int i = 0; i < many; ++i) {
      const bool is_near = std::fabs(outside[i] - 0.5) < 0.5 - FARTHEST;
      out[start + places[i]] = is_near ? p[i] : normal_quantile(outside[i]);
    }
  }
}

}  // namespace surefoot
