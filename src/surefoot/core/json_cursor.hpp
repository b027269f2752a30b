// Reading JSON where it is as usual. Every call takes one thing and says whether it was there, by the letter of
// RFC 8259; after one that was not, the rest is for a reader that can say what is wrong.
#pragma once
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <system_error>

namespace surefoot {

class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool take(char mark) {
    skip_blanks();
    if (at_ == end_ || *at_ != mark) return false;
    ++at_;
    return true;
  }

  bool is_at_end() {
    skip_blanks();
    return at_ == end_;
  }

  // A text without escapes, as the bytes between its quotes.
  std::optional<std::string_view> text() {
    if (!take('"')) return std::nullopt;
    const char* const first = at_;
    for (; at_ != end_; ++at_) {
      if (*at_ == '"') return std::string_view(first, static_cast<std::size_t>(at_++ - first));
      if (*at_ == '\\' || static_cast<unsigned char>(*at_) < 0x20) return std::nullopt;
    }
    return std::nullopt;
  }

  // A number that a double has room for. Whether -0 is one of two zeros, readers do not agree.
  std::optional<double> number() {
    skip_blanks();
    const char* const first = at_;
    if (at_ != end_ && *at_ == '-') ++at_;
    const char* const whole = at_;
    if (!digits() || (*whole == '0' && at_ - whole > 1)) return std::nullopt;
    if (at_ != end_ && *at_ == '.') {
      ++at_;
      if (!digits()) return std::nullopt;
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      if (!digits()) return std::nullopt;
    }
    if (std::string_view(first, static_cast<std::size_t>(at_ - first)) == "-0") return std::nullopt;
    double value = 0.0;
    const auto [until, error] = std::from_chars(first, at_, value);
    if (error != std::errc() || until != at_ || !std::isfinite(value)) return std::nullopt;
    return value;
  }

  // An object from brace to brace, as its bytes, unless it is nested more deeply than that; what is within is for
  // another reader to judge.
  std::optional<std::string_view> object(int deepest) {
    skip_blanks();
    if (at_ == end_ || *at_ != '{') return std::nullopt;
    const char* const first = at_;
    int depth = 0;
    for (bool is_text = false; at_ != end_; ++at_) {
      if (is_text && *at_ == '\\') {
        if (++at_ == end_) return std::nullopt;
      } else if (is_text) {
        is_text = *at_ != '"';
      } else if (*at_ == '"') {
        is_text = true;
      } else if (*at_ == '{' || *at_ == '[') {
        if (++depth > deepest) return std::nullopt;
      } else if ((*at_ == '}' || *at_ == ']') && --depth == 0) {
        return std::string_view(first, static_cast<std::size_t>(++at_ - first));
      }
    }
    return std::nullopt;
  }

 private:
  const char *at_, *end_;

  void skip_blanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }

  bool digits() {
    const char* const first = at_;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ != first;
  }
};

}  // namespace surefoot
