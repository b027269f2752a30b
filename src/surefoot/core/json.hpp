// Numbers as canonical JSON: no blanks, and the fewest digits that read back to the bit.
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace surefoot {

class JsonText {
 public:
  explicit JsonText(std::size_t room) { text_.reserve(room); }

  const std::string& text() const { return text_; }
  // Whether all numbers could be told: JSON has no infinities.
  bool is_finite() const { return is_finite_; }

  JsonText& raw(std::string_view part) {
    text_.append(part);
    return *this;
  }

  JsonText& whole(long long value) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    text_.append(digits, end);
    return *this;
  }

  // Plain where the point is near, with an exponent elsewhere; always with a sign that it is no whole number.
  JsonText& number(double value) {
    if (!std::isfinite(value)) {
      is_finite_ = false;
      return raw("null");
    }
    if (value == 0.0) return raw(std::signbit(value) ? "-0.0" : "0.0");
    char found[32], told[48], *out = told;
    const double size = std::fabs(value);
    if (size >= 1e-4 && size < 1e15) {  // the usual case, which needs no digit moved
      out = std::to_chars(told, told + sizeof told, value, std::chars_format::fixed).ptr;
      if (size >= 1.0 && std::find(told, out, '.') == out) out = std::copy_n(".0", 2, out);
      return raw({told, static_cast<std::size_t>(out - told)});
    }
    const char* const end = std::to_chars(found, found + sizeof found, value, std::chars_format::scientific).ptr;
    const char* digit = found;
    if (*digit == '-') *out++ = *digit++;
    const char* const e = std::find(digit, end, 'e');
    int exponent = 0;
    std::from_chars(e + 2, end, exponent);
    if (e[1] == '-') exponent = -exponent;
    // The digits are the first, a point, and the others.
    const char first = *digit, *rest = e > digit + 1 ? digit + 2 : e;
    if (exponent < -5 || exponent >= 16) {
      out = std::copy(digit, e, out);
      *out++ = 'e';
      out = std::to_chars(out, told + sizeof told, exponent).ptr;
    } else if (exponent < 0) {
      out = std::copy_n("0.0000", 1 - exponent, out);
      *out++ = first;
      out = std::copy(rest, e, out);
    } else {
      *out++ = first;
      const auto before = std::min<std::ptrdiff_t>(exponent, e - rest);
      out = std::copy(rest, rest + before, out);
      out = std::fill_n(out, exponent - before, '0');
      *out++ = '.';
      out = rest + before < e ? std::copy(rest + before, e, out) : std::fill_n(out, 1, '0');
    }
    return raw({told, static_cast<std::size_t>(out - told)});
  }

  // The same, where infinities are told as texts.
  JsonText& number_or_word(double value) {
    if (std::isfinite(value)) return number(value);
    return raw(std::isnan(value) ? "\"nan\"" : value > 0.0 ? "\"inf\"" : "\"-inf\"");
  }

  JsonText& list(std::span<const double> values) {
    text_.push_back('[');
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) text_.push_back(',');
      number(values[i]);
    }
    text_.push_back(']');
    return *this;
  }

 private:
  std::string text_;
  bool is_finite_ = true;
};

}  // namespace surefoot
