// The first line of the page: is it paying, since when, and how sure is that.

import { count, element, exactly, number, signed, when } from "./words.js";

// Which answer an interval gives; of a ceiling, such as costs, less is better.
function answerOf({ low, high }, isCeiling) {
  const [worst, best] = isCeiling ? [-high, -low] : [low, high];
  return worst > 0 ? "yes" : best < 0 ? "no" : "open";
}

const ANSWERS = { yes: "It is paying.", no: "It is not paying.", open: "Not known yet whether it pays." };

// The answer and its reasons, for a standing; `points` are those up to it.
export function liftLine(standing, points) {
  const { lift, guard, rounds, learner_rounds: played } = standing;
  if (!rounds) return line("open", "No decisions yet.", "");
  if (standing.is_refuted && !guard) return line("no", "Not known whether it pays.", "The data contradict what was declared.");
  if (!played) return line("open", "Nothing gained and nothing lost:", "the learner has not played yet.");
  if (!lift) return line("open", "Not known whether it pays.", "This policy has no interval for the lift over the baseline.");
  const isCeiling = guard?.metrics.find(({ name }) => name === lift.metric)?.kind === "ceiling";
  const answer = answerOf(lift, isCeiling);
  // A guard's interval is about proposals, played or not.
  const who = guard ? `On average a proposal earns, in ${lift.metric},` : "On average a decision of the learner earns";
  const sure = `${exactly(lift.confidence)} sure, however often you look`;
  return line(answer, ANSWERS[answer], `${who} ${between(lift)} the baseline would have: ${sure}.${since(answer, isCeiling, points)}`);
}

const line = (answer, verdict, text) => ({ answer, verdict, text });

function between({ low, high }) {
  const size = Math.max(Math.abs(low), Math.abs(high)), say = (value) => number(Math.abs(value), size);
  if (low >= 0) return `${say(low)} to ${say(high)} more than`;
  if (high <= 0) return `${say(high)} to ${say(low)} less than`;
  return `between ${say(low)} less and ${say(high)} more than`;
}

// From which point on every one gives the same answer; the history may begin later than the experiment.
function since(answer, isCeiling, points) {
  if (answer === "open") return "";
  let first = points.length;
  while (first && points[first - 1].lift && answerOf(points[first - 1].lift, isCeiling) === answer) first -= 1;
  if (first >= points.length) return "";
  const { rounds, time } = points[first];
  return ` Shown since decision ${count(rounds)}${first ? "" : " or earlier"}, ${when(time)}.`;
}

export function showLiftLine(place, { answer, verdict, text }) {
  const told = `${verdict} ${text}`;
  if (place.textContent === told) return; // what stays the same is not announced again
  place.className = `answer ${answer}`;
  place.replaceChildren(element("strong", {}, verdict), ` ${text}`);
}

export const cardLift = ({ lift }) => (lift?.estimate == null ? "" : `, lift ${signed(lift.estimate, Math.max(Math.abs(lift.low), Math.abs(lift.high)))}`);

export function liftTile({ lift }, tile) {
  if (!lift) return tile("Lift per decision", "\u2013", "learner less baseline");
  const size = Math.max(Math.abs(lift.low), Math.abs(lift.high)), say = (value) => signed(value, size);
  return tile("Lift per decision", say(lift.estimate), `${say(lift.low)} to ${say(lift.high)}, ${exactly(lift.confidence)} sure`);
}
