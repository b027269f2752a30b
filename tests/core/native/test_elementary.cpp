// Logarithms against the C library's, which shares no code with them.
#include <cmath>
#include <limits>
#include <random>

#include "check.hpp"
#include "elementary.hpp"

namespace {

using surefoot::check;
using surefoot::log_of;

// How many steps of the result's last place two numbers are apart.
double ulps_apart(double found, double expected) {
  const double next = std::nextafter(std::abs(expected), std::numeric_limits<double>::infinity());
  return std::abs(found - expected) / (next - std::abs(expected));
}

void logarithms_are_right_to_the_last_place() {
  std::mt19937_64 draws(7);
  std::uniform_real_distribution<double> exponents(-1070.0, 1023.0), close(0.5, 2.0);
  double worst = 0.0;
  for (int i = 0; i < 200'000; ++i) {
    for (const double x : {std::exp2(exponents(draws)), close(draws)}) {
      worst = std::max(worst, ulps_apart(log_of(x), std::log(x)));
    }
  }
  check(worst <= 1.0, "a logarithm is off by at most one step");
}

void the_ends_of_the_line_have_logarithms() {
  using limits = std::numeric_limits<double>;
  for (const double x : {limits::min(), limits::max(), limits::denorm_min(), 1.0 - limits::epsilon() / 2, 1.0}) {
    check(ulps_apart(log_of(x), std::log(x)) <= 1.0, "the smallest, the largest and those beside 1 are exact");
  }
  check(log_of(1.0) == 0.0, "ln 1 is 0");
}

}  // namespace

int main() {
  logarithms_are_right_to_the_last_place();
  the_ends_of_the_line_have_logarithms();
  return surefoot::failures == 0 ? 0 : 1;
}
