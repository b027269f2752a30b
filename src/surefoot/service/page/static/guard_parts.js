// The parts of the page for a guard: its verdict, its numbers, its metrics, and what a decision rested on.

import { drawBank } from "./guard_chart.js";
import { PER_PROPOSAL, liftTile } from "./lift.js";
import { amount, count, element, exactly, isMoney, latest, number, percent, precisely, share, sum, unitOf } from "./words.js";

const SPACE = "http://www.w3.org/2000/svg";
const LONGEST_ACTION = 120;

// Where every share is proved to be safe, no metric limits it, and what is left is the ramp's.
export const isLimited = ({ allowed }) => allowed < 1;

export const cardLine = ({ guard }) => `gets ${share(guard.share)} of the next decisions; `;

export const meaning = "A coin gives the learner the share of the decisions that is proved to be safe, and today's choice the rest.";

// How it stands, in a sentence or two that a manager can repeat.
export function verdict(status, declared) {
  const { guard, mode, rounds } = status;
  if (!rounds) return "No decisions yet.";
  if (!declared) return "";
  return `${standing(guard, mode)} ${promise(guard, declared)}`;
}

function standing(guard, mode) {
  const { share: given, allowed, binds } = guard;
  if (mode !== "guarded") return `Only the baseline plays. Were the learner let in, it would get ${share(given)} of the decisions.`;
  if (given === 0) return `The learner gets no decisions yet: ${binds} allows none before its bank has earned them.`;
  const gets = `The learner gets ${share(given)} of the decisions`;
  if (!isLimited(guard)) return `${gets}. Any share is proved safe by now; the ramp asks for no more.`;
  const more = share(allowed) === share(given) ? ", all that is proved to be safe" : `; up to ${share(allowed)} is proved to be safe`;
  return `${gets}${more}, and ${binds} allows least.`;
}

function promise({ metrics, promise: kind }, { delta }) {
  const kept = Object.entries(metrics).map(keeps).join(" and ");
  const how = kind === "mean" ? "On average over the guard's own coins" : "In what was played";
  return `${how}, ${kept} at every moment. That is ${precisely(1 - delta)} certain, if rewards keep to their bounds and the coin is fair.`;
}

const keeps = ([name, { kind, alpha }]) =>
  kind === "floor" ? `${name} is at least ${precisely(1 - alpha)} of the baseline's` : `${name} is at most ${precisely(1 + alpha)} of the baseline's`;

export function tiles(status, recentShare, first, tile) {
  const { guard } = status, isBill = speaksOfMoney(status);
  const pending = guard.late_rounds ? `${count(guard.late_rounds)} of them late, at their worst until they come` : `${count(status.learned)} settled so far`;
  return [
    ...(isBill ? moneyTiles(status, first, tile) : [liftTile(status, tile)]),
    tile("Share of the next decisions", share(guard.share), isLimited(guard) ? `up to ${share(guard.allowed)} proved safe` : "any share is proved safe", "is-margin"),
    tile("With the learner", share(recentShare ?? 0), `lately; ${share(status.learner_share)} since the start${wherever(status)}`),
    ...(isBill ? [] : [tile(`Left of ${guard.binds}`, left(guard.binds, status), isLimited(guard) ? "may still be spent; limits the share" : "may still be spent")]),
    tile("Rewards pending", count(status.pending), pending, "", status.held_up_by),
    tile("Decisions", count(status.rounds), `${count(status.learner_rounds)} the learner's, ${count(status.baseline_rounds)} the baseline's`),
  ];
}

// What the learner's decisions have cost less than today's choice at its mean; `proved` is that at its least, 95% sure.
const savings = ({ guard, learner_rounds: played }) => {
  const { baseline_mean: today, learner_mean: now, lift_high: high } = guard.metrics.cost;
  return { saved: today == null || now == null ? 0 : (today - now) * played, proved: -high * played };
};

// What may still be spent of a metric: as a share of what today's choice earns, where it has no unit.
export function left(name, status) {
  const { bank, baseline_mean: mean } = status.guard.metrics[name], unit = unitOf(name, status), today = mean * status.learned;
  return unit || !(today > 0) ? amount(bank, unit, Math.max(bank, mean ?? 1)) : share(bank / today);
}

// A day's worth follows from what was seen, which says since when: a minute of a hundred decisions, at least.
const DAY = 86400, MINUTE = 60, FEWEST = 100;
export function pace({ time, rounds }, first) {
  const seconds = first ? time - first.time : 0, fresh = first ? rounds - first.rounds : 0;
  return seconds >= MINUTE && fresh >= FEWEST ? { days: seconds / DAY, rounds: (fresh / seconds) * DAY, since: `since ${latest(first.time)}` } : null;
}

const speaksOfMoney = (status) => status.guard.metrics.cost != null && isMoney(unitOf("cost", status));
const rounded = (value, status) => amount(value, unitOf("cost", status), Math.abs(value) < 1000 ? 1 : value);

// What was saved, in words; nothing where costs are not in money, or nothing was.
export function savedMoney(status) {
  const saved = speaksOfMoney(status) ? savings(status).saved : 0;
  return saved > 0 ? rounded(saved, status) : "";
}

// The bill, and beside it the promises that it is saved under.
function moneyTiles(status, first, tile) {
  const { guard, rounds, learner_rounds: played } = status, { saved, proved } = savings(status), money = (value) => rounded(value, status);
  const share = percent(saved / (guard.metrics.cost.baseline_mean * rounds)), sure = proved > 0 ? `at least ${money(proved)}, 95% sure` : "not proved yet";
  const seen = pace(status, first);
  const rate = seen ? `; ${money((saved - savings(first).saved) / seen.days)} a day, at the pace ${seen.since}` : `; ${money((saved / rounds) * 1000)} in 1,000 decisions`;
  const floors = Object.entries(guard.metrics).filter(([, { kind, lift }]) => kind === "floor" && lift != null);
  return [
    tile("Saved so far", money(saved), saved ? `${share} of today's bill, ${sure}${rate}` : "nothing is known yet", "is-margin"),
    ...floors.map(([name, { lift, alpha }]) => tile(`Of ${name} kept`, exactly(1 + (lift * played) / rounds), `estimated; ${precisely(1 - alpha)} is promised`)),
  ];
}

// Where the proposal is today's choice there is nothing to decide, so that the share of all says little.
const wherever = ({ guard, learner_rounds: played }) => (guard.differing_rounds ? `, ${share(played / guard.differing_rounds)} of where both differ` : "");

export const NOTE = "What may still be spent, and the mean rewards of both sides, which are not comparable where shares and rewards change over time. The interval is, in the reward's own units, and holds at all times at once (95%).";

export const metrics = (status, points) => Object.entries(status.guard.metrics).map(([name, metric]) => metricRow(name, metric, name === status.guard.binds && isLimited(status.guard), unitOf(name, status), points));

function metricRow(name, metric, binds, unit, points) {
  const { kind, alpha, bank, learner_mean: learner, baseline_mean: baseline, lift_low: low, lift_high: high } = metric;
  const picture = document.createElementNS(SPACE, "svg");
  picture.setAttribute("class", "spark");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `The bank of ${name} over the decisions`);
  drawBank(picture, points, name);
  const rule = kind === "floor" ? `at least ${precisely(1 - alpha)} of the baseline's` : `at most ${precisely(1 + alpha)} of the baseline's`;
  const size = Math.max(Math.abs(learner ?? 0), Math.abs(baseline ?? 0));
  const pairs = [["Bank", sum(bank, unit, Math.max(bank, size))], ["Baseline", sum(baseline, unit, baseline ?? size)], ["Learner", sum(learner, unit, learner ?? size)]];
  return element(
    "div",
    { class: "metric", "data-metric": name },
    element("p", { class: "metric-head" }, element("b", {}, name), binds ? element("span", { class: "binds" }, "limits the share") : null, element("span", { class: "quiet" }, rule)),
    picture,
    element("dl", { class: "metric-numbers" }, ...pairs.map(([word, text]) => element("div", {}, element("dt", {}, word), element("dd", {}, text)))),
    element("p", { class: "quiet" }, `${PER_PROPOSAL}: ${sum(low, unit, size)} to ${sum(high, unit, size)}`),
  );
}

export function played({ action }) {
  const text = typeof action === "string" ? action : JSON.stringify(action);
  return text.length > LONGEST_ACTION ? `${text.slice(0, LONGEST_ACTION)}\u2026` : text;
}

export function certificateRows(decision) {
  const { decision_id: id, round, unit, probability = 1, share: given, allowed, binds, margin } = decision;
  return [
    ["Decision", `${count(round)}, ${id}`],
    ...(unit == null ? [] : [["Unit", unit]]),
    ["Share of the proposal", exactly(given)],
    ["Proved safe up to", allowed == null ? "as in its unit's round" : exactly(Math.min(allowed, 1))],
    ["Limited by", binds ?? "\u2013"],
    ["Probability of what was played", exactly(probability)],
    ["Margin", number(margin)],
  ];
}
