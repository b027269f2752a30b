// The first answer of the page: does it pay, since when is that proved, and what is so now; and the last: what to do.

import { savedMoney } from "./guard_parts.js";
import { amount, count, element, isMoney, latest, number, precisely, share, signed, sum, sure, unitOf } from "./words.js";

// Which answer an interval gives; of a ceiling, such as costs, less is better.
function answerOf({ low, high, kind }) {
  const [worst, best] = kind === "ceiling" ? [-high, -low] : [low, high];
  return worst > 0 ? "yes" : best < 0 ? "no" : "open";
}

// The metrics that are lower than today's, or higher where that is worse, although what was asked about is better.
function priceOf({ lift, proof, guard }) {
  if (!lift || answerOf((proof ?? { lift }).lift) !== "yes") return "";
  const paid = ([name, { kind, lift_low: low, lift_high: high }]) => name !== lift.metric && answerOf({ low, high, kind }) === "no";
  const worse = Object.entries(guard?.metrics ?? {}).filter(paid);
  return worse.map(([name, { kind }]) => `${kind === "ceiling" ? "more" : "less"} ${name}`).join(" and ");
}

const ANSWERS = { yes: "It pays", no: "It does not pay" };
const ROOMY = 0.1; // a holdout that shows a lift soon
const line = (answer, verdict, ...texts) => ({ answer, verdict, texts: texts.filter(Boolean) });

// The answer and its reasons, for a standing; what was proved stays proved, as the interval holds at all times at once.
export function liftLine(standing, declared = {}) {
  const { lift, proof, guard, rounds, learner_rounds: played } = standing;
  if (!rounds) return line("open", "No result yet.");
  if (standing.is_refuted && !guard) return line("no", "Not known.", "The data contradict what was declared.");
  if (standing.shared) return ofAllServers(standing);
  if (!played) return line("open", "Not started.", "The learner has not played yet.");
  if (!lift && hasStartedOver(standing)) return line("open", "Not known yet.", "The learner has not played since it started over.");
  if (!lift) return line("open", "Not known.", "This policy has no interval for what it earns more than today's choice.");
  const now = `Now: ${sentence(standing)} ${sure(lift.confidence)}.`, answer = answerOf((proof ?? standing).lift);
  if (answer === "open") return line("open", isOneOf(guard) ? `Not proved yet that ${lift.metric} is ${lift.kind === "ceiling" ? "lower" : "higher"}.` : "Not known yet.", now, narrower(guard, declared));
  if (!proof) return line(answer, `${ANSWERS[answer]}.`, now); // a server that shares its floor keeps none
  const of = answer === "yes" && isOneOf(guard) ? `${lift.kind === "ceiling" ? "less" : "more"} ${lift.metric}, ` : "";
  const price = priceOf(standing), saved = guard && answer === "yes" ? savedMoney(standing) : "";
  const stands = answerOf(lift) === answer ? inAll(standing) : " That alone would not prove it; what was proved stands.";
  const since = `proved at decision ${count(proof.round)}.`;
  const texts = [saved && `${saved} saved so far.`, `${now}${stands}`, `First proved: ${latest(proof.time)}.`];
  if (price) return line("open", `${of[0].toUpperCase()}${of.slice(1)}${since} But ${price}.`, ...texts);
  return line(answer, `${ANSWERS[answer]}: ${of}${since}`, ...texts);
}

// Where the learner plays nearly always, it is the holdout that limits what is known: the width goes as 1 / sqrt(h (1 - h)).
function narrower(guard, { min_holdout: holdout }) {
  const ratio = Math.sqrt((holdout * (1 - holdout)) / (ROOMY * (1 - ROOMY)));
  if (!guard || !(holdout < ROOMY) || guard.share < 1 - ROOMY) return "";
  return `A larger \`min_holdout\` (${ROOMY} in place of ${holdout}) would make this interval ${ratio < 0.6 ? "about half as wide" : "narrower"}.`;
}

// The interval is of a mean, so that of the sum is as many times as wide. A guard's is of its proposals, played or not.
function inAll({ guard, lift, learner_rounds: played, reward_unit: unit }) {
  if (guard) return "";
  const total = { low: lift.low * played, high: lift.high * played };
  return ` That is ${between(total, unit)} in the learner's ${count(played)} decisions.`;
}

// What somebody who looks should do: most of the time nothing, because the share moves by itself.
export function nextLine(standing, answer) {
  const { mode, is_refuted: isRefuted, guard, rounds, floor } = standing;
  if (isRefuted && !guard) return line("no", "Answer the alarm.", "It is explained below. Until then only today's choice is played.");
  if (mode === "shadow") return line("open", "Let the learner play, if you accept that risk.", "It only watches now.");
  if (mode === "paused") return line(answer, answer === "yes" ? "Let the learner play again." : "Let the learner play again, or leave it.", "It keeps learning from what it sees.");
  if (rounds && !guard && floor == null) return line("open", "Watch it yourself.", "No floor stops this policy.");
  if (answer === "no") return line("no", "Pause the learner, or improve it.", "What it may cost is limited: see what is at risk.");
  if (priceOf(standing)) return line("open", "Decide whether it is worth that.", "No more is lost than is promised: it plays as often as is proved to be safe, and drops back by itself.");
  if (answer === "yes") return line("yes", "Leave it on.", "It plays as often as is proved to be safe, and drops back by itself.");
  return line("open", "Wait.", "The learner plays only where that is proved to be safe. It takes more rewards to know more.");
}

const isOneOf = (guard) => Object.keys(guard?.metrics ?? {}).length > 1; // metrics, of which the first floor is asked about

// A server that shares its floor knows of its newest lease; the rounds of all are counted where servers meet.
function ofAllServers({ lift, shared, reward_unit: unit }) {
  if (shared.isBack) return line("open", "Looking back:", "what all servers together had earned then is not kept.");
  if (shared.isAway) return line("open", "Not known:", "the hub, which counts for all servers, does not answer.");
  if (!lift) return line("open", "Nothing gained and nothing lost:", "no round of the learner has been handed in yet.");
  const earns = `On average a decision of the learner, on all servers, earns ${between(lift, unit)} than today's choice would have: ${sure(lift.confidence)}.`;
  const answer = answerOf(lift);
  return line(answer, answer === "open" ? "Not known yet." : `${ANSWERS[answer]}.`, earns);
}

// Only a policy with a floor has margins, and none of before a restart.
const hasStartedOver = ({ restarts, floor, margin }) => restarts > 0 && floor != null && margin == null;

// A guard's interval is about proposals, played or not, and its metric may be a cost.
function sentence(status) {
  const { lift, guard, reward_unit: unit } = status;
  if (!guard) return `on average the learner earns ${between(lift, unit)} per decision than today's choice.`;
  const metrics = Object.entries(guard.metrics).sort(([one], [other]) => (other === lift.metric) - (one === lift.metric));
  return `on average a proposal ${metrics.map(([name, metric]) => ofMetric(name, metric, unitOf(name, status), isOneOf(guard))).join(" and ")} than today's choice.`;
}

// What has no unit is told as a share of today's mean.
function ofMetric(name, { kind, lift_low: low, lift_high: high, baseline_mean: today }, unit, isNamed) {
  const range = unit || !(today > 0) ? between({ low, high }, unit) : between({ low: low / today, high: high / today }, "", share);
  if (!isNamed) return `${kind === "ceiling" ? "costs" : "earns"} ${range}`;
  return kind === "ceiling" && isMoney(unit) ? `costs ${range}` : `has ${range} ${name}`;
}

function between({ low, high }, unit, format = null) {
  const size = largest({ low, high }), full = (value) => (format ?? ((value) => amount(value, unit, size)))(Math.abs(value));
  const say = (value) => (format ?? ((value) => sum(value, unit, size)))(Math.abs(value)), isNone = (value) => number(Math.abs(value), size) === "0";
  if (low >= 0 || isNone(low)) return `${say(Math.max(low, 0))} to ${full(high)} more`;
  if (high <= 0 || isNone(high)) return `${say(Math.min(high, 0))} to ${full(low)} less`;
  return `${full(low)} less to ${full(high)} more`;
}

// What stays the same is not announced again.
export function showAnswer(place, { answer, verdict, texts }) {
  const [says, because] = place.querySelectorAll(".says, .because");
  place.className = `answer ${answer}`;
  if (says.textContent !== verdict) says.textContent = verdict;
  if (because.textContent !== texts.join("")) because.replaceChildren(...texts.map((text) => element("p", {}, text)));
}

const largest = ({ low, high }) => Math.max(Math.abs(low), Math.abs(high));
const ends = (lift) => `${signed(lift.low, largest(lift))} to ${signed(lift.high, largest(lift))}`;

export function cardLift(standing) {
  const { lift, proof, learner_rounds: played } = standing, price = priceOf(standing);
  if (!lift) return played ? "" : "the learner has not played yet";
  return price ? `it pays, but ${price}` : (ANSWERS[answerOf((proof ?? standing).lift)] ?? "Not known yet if it pays").toLowerCase();
}

export const PER_PROPOSAL = "Proposal less baseline, per proposal";

// A guard's interval is about proposals, played or not, and about one of its metrics.
export function liftTile({ lift, guard, shared }, tile) {
  const name = !guard ? "Lift per decision" : lift ? `Lift of ${lift.metric}` : "Lift";
  if (!lift) return tile(name, "\u2013", guard ? PER_PROPOSAL : "learner less baseline");
  const sure = `${precisely(lift.confidence)} sure${shared ? ", all servers" : ""}`;
  return guard ? tile(name, ends(lift), `${PER_PROPOSAL}, ${sure}`, "is-range") : tile(name, signed(lift.estimate, largest(lift)), `${ends(lift)}, ${sure}`);
}
