// The parts of the page beside the picture: cards, numbers, decisions, beliefs, alarms, assumptions.

import * as guards from "./guard_parts.js";
import { lately } from "./chart.js";
import { cardLift, liftTile } from "./lift.js";
import { floorWords, leaseTile, sharedVerdict } from "./shards.js";
import { MODES, clock, count, element, number, percent, precisely, value, when } from "./words.js";

export const MOST_DECISIONS = 12;
const MOST_BELIEFS = 40;

export function card(status, isChosen) {
  const alarm = status.is_refuted ? element("span", { class: "card-alarm" }, "alarm") : null;
  return element(
    "a",
    { class: "card", href: `#/${encodeURIComponent(status.name)}`, "aria-current": isChosen ? "true" : null },
    element("span", { class: "card-name", title: status.name }, status.name),
    element("span", { class: `mode ${status.mode}` }, status.mode),
    element("span", { class: "card-line" }, `${count(status.rounds)} decisions, ${percent(status.learner_share)} learner`),
    element("span", { class: "card-line" }, `${status.guard ? guards.cardLine(status) : ""}${cardLift(status)}`, alarm),
  );
}

export function damagedCard({ name, reason }) {
  return element(
    "div",
    { class: "card is-damaged" },
    element("span", { class: "card-name" }, name),
    element("span", { class: "card-alarm" }, "damaged"),
    element("span", { class: "card-line" }, reason),
  );
}

// An experiment, a decision and its reward, as a terminal takes them.
export function firstCommands(address, asksForToken) {
  const json = "-H 'content-type: application/json'" + (asksForToken ? ' -H "authorization: Bearer $SUREFOOT_TOKEN"' : "");
  const curl = (path, body) => `curl ${address}/v1/experiments${path} ${json} \\\n  -d '${JSON.stringify(body)}'`;
  return [
    curl("", { name: "first", policy: "Guard", mode: "guarded", settings: { alpha: 0.1, delta: 0.05 } }),
    curl("/first/decisions", { decision_id: "visit-1", baseline: "today", proposal: "new" }),
    curl("/first/decisions/visit-1/reward", { value: 1 }),
  ].join("\n\n");
}

// How many there are, and how many of them somebody should look at.
export function overview(experiments, damaged) {
  const alarmed = experiments.filter((status) => status.is_refuted).length, total = experiments.length + damaged.length;
  return [`${count(total)} ${total === 1 ? "experiment" : "experiments"}`, alarmed ? `${count(alarmed)} with an alarm` : "", damaged.length ? `${count(damaged.length)} damaged` : ""].filter(Boolean).join(", ");
}

// Margins beside the floor that they are kept above; small ones with one decimal more than that.
const marginOf = (status, margin = status.margin) => number(margin, Math.max(Math.abs(status.floor ?? 0), Math.abs(margin ?? 0)) / 10 || 0.1);

export function tiles(status, points) {
  const recentShare = lately(points).at(-1);
  if (status.guard) return guards.tiles(status, recentShare, points[0], tile);
  return [
    liftTile(status, tile),
    status.shared ? leaseTile(status, tile) : tile("Proved above the floor", marginOf(status), marginNote(status), "is-margin"),
    tile("With the learner", percent(recentShare), `lately; ${percent(status.learner_share)} since the start`),
    tile("Rewards pending", count(status.pending), pendingNote(status), "", status.held_up_by),
    tile("Decisions", count(status.rounds), `${count(status.learner_rounds)} the learner's${status.shared ? ", on this server" : ""}`),
  ];
}

function pendingNote({ waiting, held_up_by: id, learned }) {
  if (waiting && id) return `${waiting === 1 ? "1 has come, and waits" : `${count(waiting)} have come, and wait`} for an earlier one`;
  return `${count(learned)} learned so far`;
}

function marginNote(status) {
  if (status.floor == null && status.rounds) return "this policy keeps no floor";
  if (status.worst_margin == null) return "the learner has not played yet";
  return `never below ${marginOf(status, status.worst_margin)} (decision ${count(status.worst_round)})`;
}

function tile(title, text, note, kind = "", hint = null) {
  return element("div", { class: `tile ${kind}`, title: hint }, element("dt", {}, title), element("dd", {}, text), element("dd", { class: "quiet" }, note));
}

// How it stands, in a sentence that a manager can repeat.
export function verdict(status, declared) {
  if (status.guard) return guards.verdict(status, declared);
  if (status.shared && declared) return sharedVerdict(status, declared);
  if (!status.rounds) return "No decisions yet.";
  if (status.is_refuted) return "The data contradict what was declared. Only the baseline plays, and the floor is not proved any more.";
  if (status.debt && status.margin == null) return `The learner started over after an alarm. It must earn back ${number(status.debt)}, the worst of what it spent, before it plays again, and may never manage to.`;
  if (!declared) return "";
  if (declared.alpha == null) return "This policy keeps no floor: nothing is guaranteed.";
  const floor = floorWords(declared);
  if (status.margin != null) {
    return `In expectation we have earned at least ${marginOf(status)} more than ${floor}. That is ${precisely(1 - declared.delta)} certain, if what was declared is true.${since(status)}`;
  }
  const proposed = status.proposed_margin, by = marginOf(status, Math.abs(proposed));
  const why = proposed < 0 ? `could have left us ${by} below` : `would have kept us at least ${by} above`;
  return `Only the baseline has played so far. The learner's last proposal ${why} ${floor}.${since(status)}`;
}

const since = ({ promise_round: first }) => (first > 1 ? ` A new promise was started: it counts from decision ${count(first)} on.` : "");

export function alarm({ level, text, runbook }) {
  const word = level === "alarm" ? "Alarm" : "Note";
  const whatToDo = runbook ? element("span", { class: "runbook" }, "What to do: ", element("b", {}, runbook), " in the runbook") : null;
  return element("p", { class: `alarm ${level}` }, element("strong", {}, `${word}: `), text, " ", whatToDo);
}

// New decisions go on top of those that are there, so that one that is being read is not replaced.
export function addDecisions(list, decisions) {
  const known = new Set([...list.children].map((entry) => entry.dataset.id));
  const fresh = decisions.filter((decision) => !known.has(decision.decision_id));
  list.prepend(...fresh.map(entryOf));
  while (list.children.length > MOST_DECISIONS) list.lastElementChild.remove();
}

function entryOf(decision) {
  const isGuard = "share" in decision;
  const played = isGuard ? guards.played(decision) : (decision.action_id ?? `action ${decision.action}`);
  const line = element(
    "summary",
    {},
    element("span", { class: `source ${decision.source}` }, decision.source),
    element("span", { class: "played" }, played),
    element("time", { class: "quiet", datetime: new Date(decision.time * 1000).toISOString() }, clock(decision.time)),
    element("span", { class: "why" }, decision.explanation.split("; true with")[0]), // the whole sentence is inside
  );
  const entry = element("li", {}, element("details", {}, line, certificate([...(isGuard ? guards.certificateRows(decision) : rowsOf(decision)), ["In words", decision.explanation]])));
  entry.dataset.id = decision.decision_id;
  return entry;
}

function rowsOf({ decision_id: id, round, proposal, proposal_id: name, guaranteed, required, margin }) {
  return [
    ["Decision", `${count(round)}, ${id}`],
    ["The learner proposed", name ?? (proposal < 0 ? "nothing" : `action ${proposal}`)],
    ["Guaranteed, if it is played", number(guaranteed)],
    ["Required", number(required)],
    ["Margin", number(margin)],
  ];
}

function certificate(rows) {
  return element("dl", { class: "certificate" }, ...rows.flatMap(([word, text]) => [element("dt", {}, word), element("dd", {}, text)]));
}

export function beliefsNote({ kind, confidence, observations }) {
  if (kind === "none") return "Earlier estimates are not stored.";
  const what = kind === "arm" ? "The mean reward of each arm" : "The weight of each feature";
  const sure = confidence == null ? "" : ` All intervals hold at once, in every round, with ${precisely(confidence)} certainty.`;
  return `${what}, from ${count(observations)} ${observations === 1 ? "reward" : "rewards"}.${sure}`;
}

export function beliefs({ kind, beliefs: found }) {
  const bounds = found.flatMap(({ low, high, estimate }) => [low, high, estimate]).filter((bound) => bound != null);
  const low = Math.min(0, ...bounds), high = Math.max(0, ...bounds), span = high - low || 1;
  const across = (given) => `${(100 * (given - low)) / span}%`;
  const rows = found.slice(0, MOST_BELIEFS).map((belief) => beliefRow(kind, belief, across, span));
  const rest = found.length - MOST_BELIEFS;
  return rest > 0 ? [...rows, element("p", { class: "quiet" }, `and ${count(rest)} more, by the API`)] : rows;
}

function beliefRow(kind, { index, name, estimate, low, high }, across, span) {
  const say = (given) => number(given, span, { isFixed: true });
  const bar = element("span", { class: "bar", "aria-hidden": "true" });
  if (estimate != null) bar.append(mark("zero", 0, null, across), mark("dot", estimate, null, across));
  if (low != null) bar.prepend(mark("interval", low, high, across));
  const interval = low == null ? "" : ` (${say(low)} to ${say(high)})`;
  const words = element("span", { class: "belief-words" }, estimate == null ? "not seen yet" : `${say(estimate)}${interval}`);
  const called = name ?? `${kind === "arm" ? "arm" : "feature"} ${index}`;
  return element("p", { class: "belief" }, element("span", { class: "belief-name", title: called }, called), bar, words);
}

function mark(kind, from, to, across) {
  const made = element("span", { class: kind });
  made.style.left = across(from); // set by script, which the page's policy allows; written in HTML it would not
  if (to != null) made.style.right = `calc(100% - ${across(to)})`;
  return made;
}

export function change({ event, time, text, by, reason }) {
  const who = element("span", { class: "change-who" }, `${by || "unattributed"} · ${when(time)} · event ${count(event)}`);
  return element("li", {}, element("span", {}, text), reason ? element("q", {}, reason) : null, who);
}

export const assumption = ({ setting, value: given, text }) =>
  element("div", {}, element("dt", {}, element("code", {}, setting), " ", element("b", {}, value(given))), element("dd", {}, text));

export const answerButton = (response) => element("button", { type: "button", "data-response": response }, ANSWERS[response].verb);
export const ANSWERS = {
  stay: { verb: "Stay on the baseline", means: "The baseline plays from now on. The alarm stays on, marked as seen." },
  relearn: {
    verb: "Relearn",
    means: "The learner starts over under the same promise. Every decision that it made so far is charged at its worst, and that debt must be earned back before it plays again, which may never happen.",
  },
  renew: {
    verb: "Start a new promise",
    means: "The learner starts over with a new ledger. What was lost before is not made up for; the page and the audit show that.",
  },
};

export const stopped = "An alarm is on: only the baseline plays, whatever the mode.";
export const modeButton = (mode) => element("button", { type: "button", "data-mode": mode }, verb(mode));
export const verb = (mode) => ({ guarded: "Let the learner play", paused: "Pause the learner", shadow: "Watch only" })[mode];
export const meaning = (mode, isGuard = false) => (isGuard && mode === "guarded" ? guards.meaning : MODES[mode]);
