// The second answer of the page: what is at risk, in the user's own unit and as a share of what today's choice earns.

import { savedMoney } from "./guard_parts.js";
import { amount, number, percent, sum as money, sure, unitOf } from "./words.js";

const line = (verdict, ...texts) => ({ answer: "risk", verdict, texts: texts.filter(Boolean) });
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

// The answer and its reasons, for a standing.
export function riskLine(standing, declared) {
  const { guard, mode, learner_rounds: played, debt, margin } = standing;
  const risks = guard ? Object.entries(guard.metrics).map(([name, metric]) => ofMetric(name, metric, standing, declared)) : [ofLedger(standing, declared)];
  const [first] = risks, certainty = `${sure(1 - declared.delta)}.`;
  if (first.alpha == null) return line("Nothing is promised.", "This policy keeps no floor.");
  if (standing.is_refuted && !guard) return line("Not proved any more.", "Only today's choice is played.");
  // A server that shares its floor knows of its own lease alone.
  if (declared.skew != null) return line(sentence(risks.length === 1 ? most({ ...first, total: null }) : limits(risks)), `All servers together are counted. ${certainty}`);
  if (!played && mode !== "guarded") return line("Nothing now.", `Only today's choice is played. Once the learner plays: ${risks.length === 1 ? most(first) : limits(risks)}.`);
  if (!guard && debt && margin == null) return line(sentence(most(first)), `Of that, at worst ${amount(debt, first.unit)} is spent, and is earned back before the learner plays again. ${certainty}`);
  if (risks.length === 1) return line(sentence(most(first)), [spent(first, played), certainty].filter(Boolean).join(" "));
  return line(sentence(limits(risks)), ...risks.filter(({ total }) => total != null).map((risk) => `${sentence(`${risk.name}: ${sum(risk)} so far${beside(risk)}`)} ${spent(risk, played, risk.isCost ? "" : savedMoney(standing))}`), certainty);
}

// Over all decisions so far: the share of what today's choice would have earned, and what was granted beside it.
function ofLedger({ estimated_baseline: today, margin, reward_unit: unit }, declared) {
  const { alpha, "constraint.reserve": granted = 0 } = declared;
  const isSum = !Object.keys(declared).some((setting) => setting.startsWith("constraint.") && setting !== "constraint.reserve");
  return { unit, alpha, total: today == null ? null : alpha * Math.max(0, today) + granted, left: isSum ? margin : null };
}

function ofMetric(name, { kind, alpha, bank, baseline_mean: mean }, standing, declared) {
  const { guard, learned } = standing, unit = unitOf(name, standing);
  const granted = declared[`${name}.reserve`] ?? 0, total = mean == null ? null : alpha * mean * learned + granted;
  return { name, unit, isCost: kind === "ceiling", alpha, total, granted, left: bank };
}

const than = ({ isCost }) => (isCost ? "more" : "less");
const sum = (risk) => `at most ${amount(risk.total, risk.unit, 10 * risk.total)} ${than(risk)}`;
const beside = ({ alpha, granted, unit }) => (granted ? `, ${percent(alpha)} and the ${amount(granted, unit)} granted` : "");
const isNone = (value, size) => number(value, size) === "0";
const most = (risk) => (risk.total == null || isNone(risk.total, 10 * risk.total) ? `at most ${percent(risk.alpha)} ${than(risk)} than today's choice earns` : `${sum(risk)}, ${percent(risk.alpha)} of what today's choice would have earned so far`);
const limits = (risks) => `at most ${risks.map((risk) => `${percent(risk.alpha)} ${than(risk)} ${risk.name}${risk.granted ? ` (and ${amount(risk.granted, risk.unit)})` : ""}`).join(" and ")} than today's choice`;

// At worst: what is not known yet counts against the learner. What has no price is set beside the money that it bought.
function spent({ total, left, unit, isCost }, played, saved = "") {
  if (!played) return "None of it is spent: the learner has not played yet.";
  if (total == null || left == null) return "";
  if (isCost && left > total) return "None of that is spent: what was saved comes on top.";
  const lost = Math.min(total, Math.max(0, total - left));
  if (isNone(lost, 10 * total)) return "None of that is spent by now.";
  return `Of that, at worst ${money(lost, unit, 10 * total)} is spent by now${saved && `, while ${saved} was saved`}.`;
}
