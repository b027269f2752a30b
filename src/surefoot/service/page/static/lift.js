// The first line of the page: is it paying, since when, and how sure is that.

import { count, element, number, precisely, signed, when } from "./words.js";

// Which answer an interval gives; of a ceiling, such as costs, less is better.
function answerOf({ low, high, kind }) {
  const [worst, best] = kind === "ceiling" ? [-high, -low] : [low, high];
  return worst > 0 ? "yes" : best < 0 ? "no" : "open";
}

const ANSWERS = { yes: "It is paying.", no: "It is not paying.", open: "Not known yet whether it pays." };

// The answer and its reasons, for a standing; `points` are those up to it.
export function liftLine(standing, points) {
  const { lift, guard, rounds, learner_rounds: played } = standing;
  if (!rounds) return line("open", "No decisions yet.", "");
  if (standing.is_refuted && !guard) return line("no", "Not known whether it pays.", "The data contradict what was declared.");
  if (standing.shared) return ofAllServers(standing);
  if (!played) return line("open", "Nothing gained and nothing lost:", "the learner has not played yet.");
  if (!lift && hasStartedOver(standing)) return line("open", ANSWERS.open, "The learner has not played since it started over.");
  if (!lift) return line("open", "Not known whether it pays.", "This policy has no interval for the lift over the baseline.");
  const answer = answerOf(lift);
  const sure = `${precisely(lift.confidence)} sure, however often you look`;
  return line(answer, ANSWERS[answer], `${guard ? ofProposals(lift) : ofDecisions(lift)}: ${sure}.${since(answer, standing, points)}`);
}

// A server that shares its floor knows of its newest lease; the rounds of all are counted where servers meet.
function ofAllServers({ lift, shared }) {
  if (shared.isBack) return line("open", "Looking back:", "what all servers together had earned then is not kept.");
  if (shared.isAway) return line("open", "Not known whether it pays:", "the hub, which counts for all servers, does not answer.");
  if (!lift) return line("open", "Nothing gained and nothing lost:", "no round of the learner has been handed in yet.");
  const sure = `${precisely(lift.confidence)} sure, however often you look`;
  const earns = `On average a decision of the learner, on all servers, earns ${between(lift, "less", "more")} than the baseline would have`;
  const answer = answerOf(lift);
  return line(answer, ANSWERS[answer], `${earns}: ${sure}.`);
}

// Only a policy with a floor has margins, and none of before a restart.
const hasStartedOver = ({ restarts, floor, margin }) => restarts > 0 && floor != null && margin == null;

const ofDecisions = (lift) => `On average a decision of the learner earns ${between(lift, "less", "more")} than the baseline would have`;
// A guard's interval is about proposals, played or not, and its metric may be a cost.
const ofProposals = (lift) => `On average a proposal's ${lift.metric} is ${between(lift, "lower", "higher")} than the baseline's`;

const line = (answer, verdict, text) => ({ answer, verdict, text });

function between({ low, high }, less, more) {
  const size = largest({ low, high }), say = (value) => number(Math.abs(value), size);
  if (low >= 0) return `${say(low)} to ${say(high)} ${more}`;
  if (high <= 0) return `${say(high)} to ${say(low)} ${less}`;
  return `between ${say(low)} ${less} and ${say(high)} ${more}`;
}

// From which point on every one gives the same answer, about the same learner: a restart begins anew, also with its
// decisions. The history may begin later than the experiment.
function since(answer, standing, points) {
  if (answer === "open") return "";
  let first = points.length, later = standing;
  while (first && isSame(answer, points[first - 1], later)) later = points[--first];
  if (first >= points.length) return "";
  const { rounds, time } = points[first];
  return ` Shown since decision ${count(rounds)}${first ? "" : " or earlier"}, ${when(time)}.`;
}

const isSame = (answer, { lift, restarts, promise_round: promise }, later) =>
  lift && answerOf(lift) === answer && restarts === later.restarts && promise === later.promise_round && lift.decisions <= later.lift.decisions;

export function showLiftLine(place, { answer, verdict, text }) {
  const told = `${verdict} ${text}`;
  if (place.textContent === told) return; // what stays the same is not announced again
  place.className = `answer ${answer}`;
  place.replaceChildren(element("strong", {}, verdict), ` ${text}`);
}

const largest = ({ low, high }) => Math.max(Math.abs(low), Math.abs(high));
const ends = (lift) => `${signed(lift.low, largest(lift))} to ${signed(lift.high, largest(lift))}`;

// Of a guard the interval alone: means of both sides are misled where shares and rewards change over time.
export const cardLift = ({ lift }) => (lift ? `, lift ${lift.estimate == null ? ends(lift) : signed(lift.estimate, largest(lift))}` : "");

export const PER_PROPOSAL = "Proposal less baseline, per proposal";

// A guard's interval is about proposals, played or not, and about one of its metrics.
export function liftTile({ lift, guard, shared }, tile) {
  const name = !guard ? "Lift per decision" : lift ? `Lift of ${lift.metric}` : "Lift";
  if (!lift) return tile(name, "\u2013", guard ? PER_PROPOSAL : "learner less baseline");
  const sure = `${precisely(lift.confidence)} sure${shared ? ", all servers" : ""}`;
  return guard ? tile(name, ends(lift), `${PER_PROPOSAL}, ${sure}`, "is-range") : tile(name, signed(lift.estimate, largest(lift)), `${ends(lift)}, ${sure}`);
}
