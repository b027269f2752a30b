// What a test of the core needs: a check that says where it failed, and the number of those that did.
#pragma once
#include <cstdio>
#include <source_location>

namespace surefoot {

inline int failures = 0;

inline void check(bool holds, const char* sentence, std::source_location here = std::source_location::current()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%u: it does not hold that %s\n", here.file_name(), here.line(), sentence);
  ++failures;
}

}  // namespace surefoot
