// Actions as a caller offers them: objects with a name and numbers.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <string>
#include <vector>

#include "bindings/rooms.hpp"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace surefoot {
namespace {

// The name of an action, if a journal can keep it.
bool is_name(nb::handle name, Py_ssize_t longest) {
  if (!PyUnicode_Check(name.ptr())) return false;
  const Py_ssize_t length = PyUnicode_GetLength(name.ptr());
  if (length < 1 || length > longest) return false;
  Py_ssize_t bytes = 0;
  if (PyUnicode_AsUTF8AndSize(name.ptr(), &bytes) != nullptr) return true;
  PyErr_Clear();  // an unpaired surrogate
  return false;
}

// Appends the numbers of an action; false where they are not as many as those of the first, or no floats.
bool add_numbers(std::vector<double>& numbers, nb::handle row, Py_ssize_t& dim, Py_ssize_t most) {
  if (!PyList_CheckExact(row.ptr())) return false;
  const Py_ssize_t count = PyList_Size(row.ptr());
  if (dim < 0) dim = count;
  if (count < 1 || count != dim || count > most) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* number = PyList_GetItem(row.ptr(), i);
    if (!PyFloat_CheckExact(number)) return false;
    numbers.push_back(PyFloat_AsDouble(number));
  }
  return true;
}

std::optional<nb::tuple> offered(nb::list actions, Py_ssize_t most, Py_ssize_t dimensions, Py_ssize_t longest) {
  static PyObject* const id = PyUnicode_InternFromString("id");
  static PyObject* const features = PyUnicode_InternFromString("features");
  const Py_ssize_t count = PyList_Size(actions.ptr());
  if (count < 1 || count > most) return std::nullopt;
  const auto names = nb::steal<nb::list>(PyList_New(count));
  const auto known = nb::steal(PySet_New(nullptr));
  std::vector<double> numbers;
  Py_ssize_t dim = -1;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* action = PyList_GetItem(actions.ptr(), i);
    auto name = nb::steal(PyObject_GetAttr(action, id));
    const auto row = name.is_valid() ? nb::steal(PyObject_GetAttr(action, features)) : nb::object();
    if (!row.is_valid()) {
      PyErr_Clear();  // it is no action
      return std::nullopt;
    }
    if (!is_name(name, longest) || !add_numbers(numbers, row, dim, dimensions)) return std::nullopt;
    if (PySet_Add(known.ptr(), name.ptr()) != 0) throw nb::python_error();
    PyList_SetItem(names.ptr(), i, name.release().ptr());
  }
  if (PySet_Size(known.ptr()) != count) return std::nullopt;  // a name occurs twice
  const nb::bytes rows(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double));
  return nb::make_tuple(names, rows, dim);
}

}  // namespace

void bind_offers(nb::module_& module) {
  module.def("offered", &offered, "actions"_a, "most"_a, "dimensions"_a, "longest"_a,
             "Names, rows as bytes and their dimension, of actions with an `id` and `features`; None where there are "
             "none or too many, one has neither, a name occurs twice or is longer, or rows are no lists of floats of "
             "one length.");
}

}  // namespace surefoot
