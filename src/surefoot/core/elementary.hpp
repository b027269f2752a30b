// Logarithms and exponentials from sums, products, quotients and roots alone, so that every IEEE machine agrees.
#pragma once
#include <bit>
#include <cstdint>

namespace surefoot {

// ln x for a positive, finite x: x = 2^k m with m around 1, and ln m as a series in (m - 1)/(m + 1).
inline double log_of(double x) {
  auto bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  if (exponent == -1023) {  // subnormal
    bits = std::bit_cast<std::uint64_t>(x * 0x1p54);
    exponent = static_cast<int>(bits >> 52) - 1023 - 54;
  }
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    exponent += 1;
  }
  const double f = m - 1.0, s = f / (2.0 + f), z = s * s, w = z * z;
  const double odd = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
  const double even =
      z * (6.666666666666735130e-01 +
           w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
  const double half = 0.5 * f * f, k = exponent;
  return k * 6.93147180369123816490e-01 - ((half - (s * (half + (odd + even)) + k * 1.90821492927058770002e-10)) - f);
}

}  // namespace surefoot
