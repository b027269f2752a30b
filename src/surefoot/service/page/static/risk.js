// The second answer of the page: what is at risk, in the user's own unit, or as a share of what today's choice earns.

import { pace, savedMoney } from "./guard_parts.js";
import { amount, isMoney, number, percent, share, sure, unitOf } from "./words.js";

const line = (verdict, ...texts) => ({ answer: "risk", verdict, texts: texts.filter(Boolean) });
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;
const sentences = (...texts) => texts.filter(Boolean).join(" ");

// The answer and its reasons, for a standing; `first` is the oldest one that is known.
export function riskLine(standing, declared, first = null) {
  const { guard, mode, learner_rounds: played, debt, margin } = standing;
  const risks = guard ? Object.entries(guard.metrics).map(([name, metric]) => ofMetric(name, metric, standing, declared)) : [ofLedger(standing, declared)];
  const [risk] = risks, certainty = `${sure(1 - declared.delta)}.`, daily = (risk) => aDay(risk, pace(standing, first));
  if (risk.alpha == null) return line("Nothing is promised.", "This policy keeps no floor.");
  if (standing.is_refuted && !guard) return line("Not proved any more.", "Only today's choice is played.");
  // A server that shares its floor knows of its own lease alone.
  if (declared.skew != null) return line(sentence(risks.length === 1 ? most({ ...risk, total: null }) : limits(risks)), `All servers together are counted. ${certainty}`);
  if (!played && mode !== "guarded") return line("Nothing now.", `Only today's choice is played. Once the learner plays: ${risks.length === 1 ? most(risk) : limits(risks)}.`);
  if (!guard && debt && margin == null) return line(sentence(most(risk)), `At worst ${say(risk, debt)} ${are(risk)} lost so far, and is earned back before the learner plays again. ${certainty}`);
  if (risks.length === 1) return line(sentence(most(risk)), sentences(spent(risk, played), daily(risk), certainty));
  const saved = savedMoney(standing);
  return line(sentence(limits(risks)), ...risks.filter(({ total }) => total != null).map((risk) => sentences(ofOne(risk), spent(risk, played, risk.isCost ? "" : saved), daily(risk))), certainty);
}

// Over all decisions so far: the share of what today's choice would have earned, and what was granted beside it.
function ofLedger({ estimated_baseline: today, margin, rounds, reward_unit: unit }, declared) {
  const { alpha, "constraint.reserve": granted = 0 } = declared;
  const isSum = !Object.keys(declared).some((setting) => setting.startsWith("constraint.") && setting !== "constraint.reserve");
  return { unit, alpha, today: Math.max(0, today), mean: today / rounds, total: today == null ? null : alpha * Math.max(0, today) + granted, left: isSum ? margin : null };
}

function ofMetric(name, { kind, alpha, bank, baseline_mean: mean }, standing, declared) {
  const today = mean * standing.learned, unit = unitOf(name, standing);
  const granted = declared[`${name}.reserve`] ?? 0, total = mean == null ? null : alpha * today + granted;
  return { name, unit, isCost: kind === "ceiling", alpha, today, mean, total, granted, left: bank };
}

// What has no unit is told as a share of what today's choice earns.
const say = ({ unit, today, total }, value) => (unit || !(today > 0) ? amount(value, unit, 10 * total) : share(value / today));
const are = ({ unit }) => (unit && !isMoney(unit) ? "are" : "is");
const than = ({ isCost }) => (isCost ? "more" : "less");
const isNone = ({ unit, today, total }, value) => (unit || !(today > 0) ? number(value, 10 * total) === "0" : share(value / today) === "0%");

function most(risk) {
  if (risk.total == null || isNone(risk, risk.total)) return `at most ${percent(risk.alpha)} ${than(risk)} than today's choice earns`;
  if (!risk.unit && risk.today > 0) return `at most ${say(risk, risk.total)} ${than(risk)} than today's choice would have earned so far`;
  return `at most ${say(risk, risk.total)} ${than(risk)}, ${percent(risk.alpha)} of what today's choice would have earned so far`;
}

const limits = (risks) => `at most ${risks.map((risk) => `${percent(risk.alpha)}${risk.granted ? ` plus ${amount(risk.granted, risk.unit)}` : ""} ${than(risk)} ${risk.name}`).join(" and ")} than today's choice`;

function ofOne(risk) {
  const { name, alpha, granted, unit, isCost } = risk;
  if (!unit && risk.today > 0) return sentence(`${name}: at most ${say(risk, risk.total)} ${isCost ? "more may be spent" : "may be lost"}`);
  return sentence(`${name}: at most ${say(risk, risk.total)} ${than(risk)} so far${granted ? `, ${percent(alpha)} plus the ${amount(granted, unit)} granted` : ""}`);
}

// At worst: what is not known yet counts against the learner. What has no price is set beside the money that it bought.
function spent(risk, played, saved = "") {
  const { total, left, isCost } = risk, word = isCost ? "spent" : "lost";
  if (!played) return `None of it has been ${word}: the learner has not played yet.`;
  if (total == null || left == null) return "";
  if (isCost && left > total) return "None of it has been spent: what was saved comes on top.";
  const lost = Math.min(total, Math.max(0, total - left));
  if (isNone(risk, lost)) return `None of it has been ${word}.`;
  return `At worst ${say(risk, lost)} ${are(risk)} ${word} so far${saved && `, while ${saved} was saved`}.`;
}

// Money is told by the day, too, without what is granted once.
function aDay({ unit, alpha, mean }, pace) {
  if (!isMoney(unit) || !pace || !(mean > 0)) return "";
  return `At the pace ${pace.since}: at most ${amount(alpha * mean * pace.rounds, unit)} a day.`;
}
