// Logarithms and exponentials from sums, products, quotients and roots alone, so that every IEEE machine agrees.
// They hold no branch: a loop over many numbers can be worked on by vector units, with the same bits.
#pragma once
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace surefoot {

inline constexpr double INFINITE = std::numeric_limits<double>::infinity();
inline constexpr double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();
// ln 2 in two parts; the first has so few bits that its product with an exponent is exact.
inline constexpr double LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;
// Added to a small whole number, it leaves that number in the lowest bits; added and subtracted, it rounds to one.
inline constexpr double WHOLE = 0x1.8p52;

// 2^k for a whole k from -1022 to 1023.
constexpr double power_of_two(double k) {
  const std::uint64_t exponent = std::bit_cast<std::uint64_t>(k + WHOLE) - std::bit_cast<std::uint64_t>(WHOLE) + 1023;
  return std::bit_cast<double>(exponent << 52);
}

// x = 2^exponent (1 + fraction), with a fraction from sqrt(1/2) - 1 to sqrt(2) - 1.
struct Split {
  double exponent, fraction;
};

// For a positive, finite x that is not subnormal.
constexpr Split split(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const double mantissa = std::bit_cast<double>((bits & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL);
  const double exponent = std::bit_cast<double>((bits >> 52) | 0x4330000000000000ULL) - (0x1p52 + 1023.0);
  const bool is_high = mantissa > 1.4142135623730951;
  return {is_high ? exponent + 1.0 : exponent, (is_high ? 0.5 * mantissa : mantissa) - 1.0};
}

// ln(2^k (1 + f)) + rest, as a series in s = f/(2 + f):  ln(1 + f) = 2 (s + s^3/3 + ...).
constexpr double log_of_split(double k, double f, double rest) {
  const double s = f / (2.0 + f), z = s * s, w = z * z;
  const double odd = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
  const double even =
      z * (6.666666666666735130e-01 +
           w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
  const double half = 0.5 * f * f;
  return k * LN2_HIGH - ((half - (s * (half + (odd + even)) + (k * LN2_LOW + rest))) - f);
}

// ln x; -inf at 0, NaN below it.
constexpr double log_of(double x) {
  const bool is_subnormal = x < 0x1p-1022;
  const Split parts = split(is_subnormal ? x * 0x1p54 : x);
  const double found = log_of_split(is_subnormal ? parts.exponent - 54.0 : parts.exponent, parts.fraction, 0.0);
  const double beyond = x == 0.0 ? -INFINITE : x > 0.0 ? x : NOT_A_NUMBER;  // x itself is inf there
  return x > 0.0 && x < INFINITE ? found : beyond;
}

// ln(1 + x), to the last digits where x is small; -inf at -1, NaN below it.
constexpr double log1p_of(double x) {
  const double sum = 1.0 + x;
  const Split parts = split(sum);
  // What the sum has lost of x; where 1 + x needs no exponent, x itself is the fraction and nothing is lost.
  const double lost = (x < 1.0 ? x - (sum - 1.0) : 1.0 - (sum - x)) / sum;
  const bool is_near = parts.exponent == 0.0;
  const double found = log_of_split(parts.exponent, is_near ? x : parts.fraction, is_near ? 0.0 : lost);
  const double beyond = x == -1.0 ? -INFINITE : x > -1.0 ? x : NOT_A_NUMBER;
  return x > -1.0 && x < INFINITE && x != 0.0 ? found : beyond;
}

// e^x = 2^exponent (1 + (whole + rest)).
struct Exponential {
  double exponent, whole, rest;
};

// With r = x - k ln 2, e^r = 1 + r + r c/(2 - c), c = r - (r^2/6 - r^4/360 + ...).
constexpr Exponential exponential(double x) {
  const double k = (x * 1.44269504088896338700e+00 + WHOLE) - WHOLE;
  const double high = x - k * LN2_HIGH, low = k * LN2_LOW, r = high - low, z = r * r;
  const double c =
      r -
      z * (1.66666666666666019037e-01 +
           z * (-2.77777777770155933842e-03 +
                z * (6.61375632143793436117e-05 + z * (-1.65339022054652515390e-06 + z * 4.13813679705723846039e-08))));
  return {k, high, r * c / (2.0 - c) - low};
}

// e^x; 0 and inf where it leaves the numbers.
constexpr double exp_of(double x) {
  const double within = x < -746.0 ? -746.0 : x > 710.0 ? 710.0 : x;
  const Exponential parts = exponential(within);
  // In two steps, since 2^1024 and 2^-1075 are no numbers though their products with others may round to one.
  const double first = (0.5 * parts.exponent + WHOLE) - WHOLE;
  return (1.0 + (parts.whole + parts.rest)) * power_of_two(first) * power_of_two(parts.exponent - first);
}

// e^x - 1, to the last digits where x is small.
constexpr double expm1_of(double x) {
  const double within = x < -40.0 ? -40.0 : x > 40.0 ? 40.0 : x;
  const Exponential parts = exponential(within);
  const double scale = power_of_two(parts.exponent);
  const double found = ((scale - 1.0) + scale * parts.whole) + scale * parts.rest;
  return x > 40.0 ? exp_of(x) - 1.0 : x == 0.0 ? x : found;
}

// c[0] + c[1] x + c[2] x^2 + ..., by Horner's rule.
template <std::size_t N>
constexpr double polynomial(const double (&c)[N], double x) {
  double found = c[N - 1];
  for (std::size_t i = N - 1; i > 0; --i) found = found * x + c[i - 1];
  return found;
}

inline constexpr double MIDDLE = 0.425;  // how far from 1/2 a probability lies in the middle

// The quantile of 1/2 + q in the middle of the distribution.  (Wichura 1988, algorithm AS 241)
constexpr double middle_quantile(double q) {
  constexpr double above[] = {3.3871328727963666080e+0, 1.3314166789178437745e+2, 1.9715909503065514427e+3,
                              1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                              3.3430575583588128105e+4, 2.5090809287301226727e+3};
  constexpr double below[] = {1.0,
                              4.2313330701600911252e+1,
                              6.8718700749205790830e+2,
                              5.3941960214247511077e+3,
                              2.1213794301586595867e+4,
                              3.9307895800092710610e+4,
                              2.8729085735721942674e+4,
                              5.2264952788528545610e+3};
  const double r = 0.180625 - q * q;
  return q * polynomial(above, r) / polynomial(below, r);
}

// A probability outside of the middle: on which side, and sqrt(-ln) of what lies beyond it.
struct Tail {
  double side, root;
};
inline Tail tail_of(double p) {
  const bool is_low = p < 0.5;
  return {is_low ? -1.0 : 1.0, std::sqrt(-log_of(is_low ? p : 1.0 - p))};
}

inline constexpr double FAR = 5.0;  // the root from which a tail is far out, beyond e^-25

// The quantile in a tail that is not far out.
constexpr double tail_quantile(const Tail& tail) {
  constexpr double above[] = {1.42343711074968357734e+0, 4.63033784615654529590e+0, 5.76949722146069140550e+0,
                              3.64784832476320460504e+0, 1.27045825245236838258e+0, 2.41780725177450611770e-1,
                              2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double below[] = {1.0,
                              2.05319162663775882187e+0,
                              1.67638483018380384940e+0,
                              6.89767334985100004550e-1,
                              1.48103976427480074590e-1,
                              1.51986665636164571966e-2,
                              5.47593808499534494600e-4,
                              1.05075007164441684324e-9};
  return tail.side * polynomial(above, tail.root - 1.6) / polynomial(below, tail.root - 1.6);
}

// z with P(Z <= z) = p, by the rational functions of the same algorithm; NaN outside of [0, 1].
inline double normal_quantile(double p) {
  if (std::fabs(p - 0.5) <= MIDDLE) return middle_quantile(p - 0.5);
  if (!(p > 0.0 && p < 1.0)) return p == 0.0 ? -INFINITE : p == 1.0 ? INFINITE : NOT_A_NUMBER;
  const Tail tail = tail_of(p);
  if (tail.root <= FAR) return tail_quantile(tail);
  constexpr double above[] = {6.65790464350110377720e+0, 5.46378491116411436990e+0, 1.78482653991729133580e+0,
                              2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                              2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double below[] = {1.0,
                              5.99832206555887937690e-1,
                              1.36929880922735805310e-1,
                              1.48753612908506148525e-2,
                              7.86869131145613259100e-4,
                              1.84631831751005468180e-5,
                              1.42151175831644588870e-7,
                              2.04426310338993978564e-15};
  return tail.side * polynomial(above, tail.root - FAR) / polynomial(below, tail.root - FAR);
}

}  // namespace surefoot
