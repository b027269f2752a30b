// The first answer of the page: does it pay, since when is that proved, and what is so now.

import { amount, count, element, isMoney, latest, number, precisely, signed, sure } from "./words.js";

// Which answer an interval gives; of a ceiling, such as costs, less is better.
function answerOf({ low, high, kind }) {
  const [worst, best] = kind === "ceiling" ? [-high, -low] : [low, high];
  return worst > 0 ? "yes" : best < 0 ? "no" : "open";
}

const ANSWERS = { yes: "It pays", no: "It does not pay" };
const line = (answer, verdict, ...texts) => ({ answer, verdict, texts });

// The answer and its reasons, for a standing; `proved` are the points at which an answer was first proved.
export function liftLine(standing, proved) {
  const { lift, guard, rounds, learner_rounds: played } = standing;
  if (!rounds) return line("open", "No decisions yet.");
  if (standing.is_refuted && !guard) return line("no", "Not known.", "The data contradict what was declared.");
  if (standing.shared) return ofAllServers(standing);
  if (!played) return line("open", "Nothing gained and nothing lost.", "The learner has not played yet.");
  if (!lift && hasStartedOver(standing)) return line("open", "Not known yet.", "The learner has not played since it started over.");
  if (!lift) return line("open", "Not known.", "This policy has no interval for what it earns more than today's choice.");
  const first = proofOf(standing, proved), now = `Now: ${sentence(standing)} ${sure(lift.confidence)}.`;
  if (!first) return line("open", isOneOf(guard) ? `Not known yet of ${lift.metric}.` : "Not known yet.", now);
  const answer = answerOf(first.lift), isSo = answerOf(lift) === answer;
  const then = `When that was first proved, ${latest(first.time)}: ${range(first)}.`;
  return line(answer, `${ANSWERS[answer]}: proved at decision ${count(first.rounds)}.`, isSo ? now : `${now} That alone would not prove it; what was proved stands.`, then);
}

const isOneOf = (guard) => Object.keys(guard?.metrics ?? {}).length > 1; // metrics, of which the first floor is asked about

// What was proved stays proved, of the same learner: its interval holds at all times at once.
function proofOf(standing, proved) {
  const { events, restarts, promise_round: promise, lift } = standing;
  const found = proved.findLast((point) => point.events <= events && point.restarts === restarts && point.promise_round === promise);
  return found ?? (answerOf(lift) === "open" ? null : standing);
}

// A server that shares its floor knows of its newest lease; the rounds of all are counted where servers meet.
function ofAllServers({ lift, shared, reward_unit: unit }) {
  if (shared.isBack) return line("open", "Looking back:", "what all servers together had earned then is not kept.");
  if (shared.isAway) return line("open", "Not known:", "the hub, which counts for all servers, does not answer.");
  if (!lift) return line("open", "Nothing gained and nothing lost:", "no round of the learner has been handed in yet.");
  const earns = `On average a decision of the learner, on all servers, earns ${between(lift, "less", "more", unit)} than today's choice would have: ${sure(lift.confidence)}.`;
  const answer = answerOf(lift);
  return line(answer, answer === "open" ? "Not known yet." : `${ANSWERS[answer]}.`, earns);
}

// Only a policy with a floor has margins, and none of before a restart.
const hasStartedOver = ({ restarts, floor, margin }) => restarts > 0 && floor != null && margin == null;

// A guard's interval is about proposals, played or not, and its metric may be a cost.
const range = ({ lift, guard, reward_unit: unit }) => (guard ? `${lift.metric} ${between(lift, "below", "above", unit)}` : `${between(lift, "less", "more", unit)} per decision`);

function sentence({ lift, guard, reward_unit: unit }) {
  if (!guard) return `on average the learner earns ${range({ lift, reward_unit: unit })} than today's choice.`;
  const others = Object.entries(guard.metrics).filter(([name]) => name !== lift.metric);
  const rest = others.map(([name, { lift_low: low, lift_high: high }]) => `; its ${name} ${between({ low, high }, "below", "above")}`).join("");
  return `on average a proposal's ${lift.metric} lies ${between(lift, "below", "above", unit)} that of today's choice${rest}.`;
}

function between({ low, high }, less, more, unit) {
  const size = largest({ low, high }), full = (value) => amount(Math.abs(value), unit, size);
  const say = isMoney(unit) ? full : (value) => number(Math.abs(value), size);
  if (low >= 0) return `${say(low)} to ${full(high)} ${more}`;
  if (high <= 0) return `${say(high)} to ${full(low)} ${less}`;
  return `between ${full(low)} ${less} and ${full(high)} ${more}`;
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

export const cardLift = ({ lift, learner_rounds: played }) => (lift ? `lift ${ends(lift)}` : played ? "" : "the learner has not played yet");

export const PER_PROPOSAL = "Proposal less baseline, per proposal";

// A guard's interval is about proposals, played or not, and about one of its metrics.
export function liftTile({ lift, guard, shared }, tile) {
  const name = !guard ? "Lift per decision" : lift ? `Lift of ${lift.metric}` : "Lift";
  if (!lift) return tile(name, "\u2013", guard ? PER_PROPOSAL : "learner less baseline");
  const sure = `${precisely(lift.confidence)} sure${shared ? ", all servers" : ""}`;
  return guard ? tile(name, ends(lift), `${PER_PROPOSAL}, ${sure}`, "is-range") : tile(name, signed(lift.estimate, largest(lift)), `${ends(lift)}, ${sure}`);
}
