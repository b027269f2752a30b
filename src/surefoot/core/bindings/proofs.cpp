// Proofs of SafeLUCB's gates, as Python reads them and as a journal writes them.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>

#include "bindings/arrays.hpp"
#include "bindings/bound_policy.hpp"
#include "bindings/rooms.hpp"
#include "json.hpp"
#include "proof.hpp"

using namespace nanobind::literals;

namespace surefoot {
namespace {

using FactIn = std::tuple<int, double, double, VectorIn>;
using PieceOut = std::tuple<int, Array, double>;

std::pair<double, std::vector<PieceOut>> pieces_of(const VectorIn& question, const std::vector<FactIn>& given,
                                                   const std::optional<VectorIn>& center,
                                                   const std::optional<MatrixIn>& whitener, double radius,
                                                   double theta_bound) {
  const auto d = static_cast<int>(question.size());
  std::vector<SplitFact> split;
  for (const auto& [kind, level, weight, normal] : given) {
    check_size(normal.size(), d);
    split.push_back({kind, level, weight, normal.data()});
  }
  KnownSet known{.theta_bound = theta_bound};
  if (center && whitener) {
    check_size(center->size(), d);
    check_size(whitener->size(), d * d);
    known.center = center->data();
    known.whitener = whitener->data();
    known.radius = radius;
  }
  const SplitProof proof = prove_split(numbers(question), split, known);
  std::vector<PieceOut> pieces;
  for (std::size_t k = 0; k < proof.facts.size(); ++k) {
    const double* first = proof.vectors.data() + k * question.size();
    pieces.emplace_back(proof.facts[k], array_of({first, first + d}, {question.size()}), proof.bounds[k]);
  }
  return {proof.value, std::move(pieces)};
}

// A fact of a proof; false where a journal has no words for it.
template <int D>
bool write_fact(JsonText& out, const Record<D>& record, int place, const KnownSet& known, long long observations,
                std::span<const int> points, std::string_view likelihood_name) {
  if (place == SplitProof::by_ball || (place == SplitProof::by_set && known.center == nullptr)) {
    out.raw(R"({"kind":"ball","radius":)").number(known.theta_bound).raw("}");
    return true;
  }
  if (place == SplitProof::by_set) {
    out.raw(R"({"kind":"ellipsoid","observations":)").whole(observations);
    out.raw(R"(,"radius":)").number(known.radius).raw("}");
    return true;
  }
  const auto& fact = record.split[static_cast<std::size_t>(place)];
  const int point = points[static_cast<std::size_t>(place)];
  if (point < 0 && (fact.kind < 0 || fact.kind >= tangent)) return false;
  const auto name = point < 0 ? FACT_WORDS[static_cast<std::size_t>(fact.kind)] : likelihood_name;
  out.raw(R"({"kind":"linear","level":)").number_or_word(fact.level).raw(R"(,"name":")").raw(name);
  out.raw(R"(","normal":)").list(View<D>(fact.normal));
  if (point >= 0) {
    const auto p = static_cast<std::size_t>(point);
    if (p >= record.points.size()) return false;
    out.raw(R"(,"point":)").list(View<D>(record.points[p]));
  }
  out.raw("}");
  return true;
}

// The certificate of a round as a journal holds it (`CertificateRecord`), keys sorted; false where JSON cannot tell it.
template <int D>
bool write_certificate(JsonText& out, const Evidence<D>& evidence, double theta_bound, double gap,
                       std::string_view likelihood_name) {
  const Record<D>& record = evidence.record;
  const int d = record.question.size();
  std::vector<SplitFact> split;
  std::vector<int> points;  // of each fact, where the likelihood set is touched
  int touched = 0;
  for (const auto& fact : record.split) {
    split.push_back({fact.kind, fact.level, fact.weight, fact.normal.data()});
    points.push_back(fact.kind >= likelihood ? touched++ : -1);
  }
  KnownSet known{.theta_bound = theta_bound};
  std::vector<double> rows;  // of the whitener, without gaps
  if (evidence.observations > 0) {
    const auto& whitener = evidence.known().whitener();
    for (int i = 0; i < d; ++i) rows.insert(rows.end(), whitener.row(i), whitener.row(i) + d);
    known.center = evidence.known().center().data();
    known.whitener = rows.data();
    known.radius = record.radius;
  }
  const SplitProof proof = prove_split(View<D>(record.question), split, known);
  out.raw(R"({"gap":)").number(gap).raw(R"(,"guaranteed":)").number_or_word(record.guaranteed);
  out.raw(R"(,"optimism":)").number_or_word(record.optimism).raw(R"(,"proof":{"pieces":[)");
  const std::span<const double> vectors = proof.vectors;
  for (std::size_t k = 0; k < proof.facts.size(); ++k) {
    out.raw(k > 0 ? R"(,{"bound":)" : R"({"bound":)").number_or_word(proof.bounds[k]).raw(R"(,"fact":)");
    if (!write_fact(out, record, proof.facts[k], known, evidence.observations, points, likelihood_name)) {
      return false;
    }
    const auto size = static_cast<std::size_t>(d);
    out.raw(R"(,"vector":)").list(vectors.subspan(k * size, size)).raw("}");
  }
  out.raw(R"(],"question":)").list(View<D>(record.question)).raw(R"(,"value":)").number_or_word(proof.value);
  out.raw(R"(},"proposal":)").whole(record.action).raw(R"(,"required":)").number_or_word(record.required).raw("}");
  return out.is_finite();
}

template <int D>
std::optional<nb::bytes> certificate_json(const Evidence<D>& evidence, double theta_bound, double gap,
                                          std::string_view likelihood_name) {
  JsonText out(1024);
  if (!write_certificate(out, evidence, theta_bound, gap, likelihood_name)) return std::nullopt;
  return nb::bytes(out.text().data(), out.text().size());
}

// Rows as a journal holds them; None where JSON cannot tell a number.
std::optional<nb::bytes> rows_json(const MatrixIn& rows) {
  const std::size_t count = rows.shape(0), dim = rows.shape(1);
  JsonText out(2 + 24 * rows.size());
  out.raw("[");
  for (std::size_t i = 0; i < count; ++i) {
    out.raw(i > 0 ? "," : "").list(std::span<const double>(rows.data() + i * dim, dim));
  }
  out.raw("]");
  if (!out.is_finite()) return std::nullopt;
  return nb::bytes(out.text().data(), out.text().size());
}

}  // namespace

void bind_proofs(nb::module_& module) {
  module.def("given_away", [](const VectorIn& question, const MatrixIn& pieces, double reach) {
    check_size(pieces.shape(1), static_cast<int>(question.size()));
    return given_away(numbers(question), {pieces.data(), pieces.size()}, reach);
  });
  module.def("sum_below", [](const std::vector<double>& bounds) { return sum_below(bounds); });
  module.def("multiple_below", &multiple_below, "level"_a, "weight"_a);
  module.def("pieces_of_split", &pieces_of, "question"_a, "split"_a, "center"_a.none(), "whitener"_a.none(), "radius"_a,
             "theta_bound"_a,
             "The value, and the pieces of the question that a gate's split amounts to: each with its fact's place in "
             "the split (BY_SET, BY_BALL where it is none), its vector and its bound.");
  module.attr("GIVEN_AWAY") = GIVEN_AWAY;
  module.attr("BY_SET") = SplitProof::by_set;
  module.attr("BY_BALL") = SplitProof::by_ball;
  module.def("rows_json", &rows_json, "rows"_a, "Rows as JSON; None where one is not finite.");
  constexpr const char* text = "The certificate of a round as a journal holds it; None where JSON cannot tell it.";
  in_each_dimension([&]<int D>() {
    module.def(
        "certificate_json",
        [](const Evidence<D>& evidence, double theta_bound, double gap, nb::str likelihood_name) {
          return certificate_json(evidence, theta_bound, gap, likelihood_name.c_str());
        },
        "evidence"_a, "theta_bound"_a, "gap"_a, "likelihood_name"_a, text);
  });
}

}  // namespace surefoot
