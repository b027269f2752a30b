// The usual question of a caller, from the bytes of its body: actions with a name and numbers, and what stands beside.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <string_view>
#include <vector>

#include "bindings/rooms.hpp"
#include "json_cursor.hpp"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace surefoot {
namespace {

nb::bytes as_bytes(std::string_view text) { return nb::bytes(text.data(), text.size()); }

constexpr int DEEPEST = 60;  // levels of a context: more are for a reader that counts on its stack

// The most actions, numbers of one, and characters of a text.
struct Sizes {
  Py_ssize_t actions, dimensions, text;
};

struct Offers {
  const Sizes most;
  nb::list names;
  nb::object known = nb::steal(PySet_New(nullptr));
  std::vector<double> numbers;
  Py_ssize_t dim = -1;
  nb::object baseline = nb::none(), decision_id = nb::none(), baseline_reward = nb::none(), context = nb::none();

  explicit Offers(const Sizes& most_) : most(most_) {}

  // A text that is neither empty nor too long; nothing where it is not UTF-8.
  nb::object text(JsonCursor& body) const {
    const auto found = body.text();
    if (!found) return {};
    const auto made = nb::steal(PyUnicode_DecodeUTF8(found->data(), static_cast<Py_ssize_t>(found->size()), nullptr));
    if (!made.is_valid()) PyErr_Clear();
    const Py_ssize_t length = made.is_valid() ? PyUnicode_GetLength(made.ptr()) : 0;
    return length >= 1 && length <= most.text ? made : nb::object();
  }

  // As many numbers as the first action has.
  bool add_numbers(JsonCursor& body) {
    if (!body.take('[')) return false;
    Py_ssize_t count = 0;
    do {
      const auto number = body.number();
      if (!number || ++count > most.dimensions) return false;
      numbers.push_back(*number);
    } while (body.take(','));
    if (dim < 0) dim = count;
    return count == dim && body.take(']');
  }

  bool add_action(JsonCursor& body) {
    bool has_name = false, has_numbers = false;
    if (!body.take('{')) return false;
    do {
      const auto field = body.text();
      if (!field || !body.take(':')) return false;
      if (*field == "id" && !has_name) {
        const nb::object name = text(body);
        if (!name.is_valid()) return false;
        if (PySet_Add(known.ptr(), name.ptr()) != 0) throw nb::python_error();
        names.append(name);
        has_name = true;
      } else if (*field == "features" && !has_numbers) {
        if (!add_numbers(body)) return false;
        has_numbers = true;
      } else {
        return false;
      }
    } while (body.take(','));
    return has_name && has_numbers && body.take('}');
  }

  bool add_actions(JsonCursor& body) {
    if (nb::len(names) > 0 || !body.take('[')) return false;
    Py_ssize_t count = 0;
    do {
      if (++count > most.actions || !add_action(body)) return false;
    } while (body.take(','));
    return PySet_Size(known.ptr()) == count && body.take(']');  // no name occurs twice
  }

  // What stands beside the actions, once each.
  bool add_field(std::string_view field, JsonCursor& body) {
    if (field == "actions") return add_actions(body);
    if (field == "baseline" && baseline.is_none()) return (baseline = text(body)).is_valid();
    if (field == "decision_id" && decision_id.is_none()) return (decision_id = text(body)).is_valid();
    if (field == "baseline_reward" && baseline_reward.is_none()) {
      const auto number = body.number();
      if (number) baseline_reward = nb::float_(*number);
      return number.has_value();
    }
    if (field == "context" && context.is_none()) {
      const auto found = body.object(DEEPEST);
      if (found) context = as_bytes(*found);
      return found.has_value();
    }
    return false;
  }

  bool read(JsonCursor& body) {
    if (!body.take('{')) return false;
    do {
      const auto field = body.text();
      if (!field || !body.take(':') || !add_field(*field, body)) return false;
    } while (body.take(','));
    return nb::len(names) > 0 && body.take('}') && body.is_at_end();
  }
};

std::optional<nb::tuple> offered(nb::bytes body, Py_ssize_t most, Py_ssize_t dimensions, Py_ssize_t longest) {
  Offers found({most, dimensions, longest});
  JsonCursor cursor(std::string_view(body.c_str(), body.size()));
  if (!found.read(cursor)) return std::nullopt;
  const nb::bytes rows(reinterpret_cast<const char*>(found.numbers.data()), found.numbers.size() * sizeof(double));
  return nb::make_tuple(found.names, rows, found.dim, found.baseline, found.baseline_reward, found.decision_id,
                        found.context);
}

}  // namespace

void bind_offers(nb::module_& module) {
  module.def("offered", &offered, "body"_a, "most"_a, "dimensions"_a, "longest"_a,
             "Of a body of JSON: names, rows as bytes, their dimension, `baseline`, `baseline_reward`, `decision_id` "
             "and the bytes of `context`. None where anything is unusual: a reader that knows words must see it.");
}

}  // namespace surefoot
