// Servers that share the experiment's floor: what each is leased, and what is said of all of them instead of one.

import { ask, of } from "./api.js";
import { confirmLoss } from "./dialogs.js";
import { $, $set, count, element, latest, number, precisely } from "./words.js";

const alone = new Set(); // experiments with one ledger need not be asked again

// Shows who shares the floor, and returns what the hub says of it; null where there is one ledger.
export async function showShards(name, isChosen, mayChange) {
  if (alone.has(name)) return hide();
  const { hub: found } = await ask(of(name, "/shards"));
  if (found == null) alone.add(name);
  if (!isChosen()) return null;
  if (found == null) return hide();
  $("shards-panel").hidden = false;
  const known = isAway(found) ? "The hub does not answer, so this is the newest lease of this server alone" : `${sums(found)} that may be lost in all`;
  $set("shards-note", `${known}. This server is ${found.shard}.`);
  $("shards-error").hidden = found.error == null;
  $set("shards-error", found.error == null ? "" : `The lease of this server was not renewed: ${found.error}`);
  show(name, found, mayChange);
  return found;
}

function hide() {
  $("shards-panel").hidden = true;
  return null;
}

// A shard that does not reach the hub knows of its own lease alone.
export const isAway = ({ pots }) => !Object.keys(pots).length;

// A guard has an amount for each metric; of a single one the name says nothing.
function each(amounts, say, and) {
  const metrics = Object.keys(amounts);
  return metrics.map((metric) => (metrics.length < 2 ? say(metric) : `${say(metric)} ${metric}`)).join(and);
}

const sums = ({ pots, leased }) => each(pots, (metric) => `${number(leased[metric], pots[metric])} is leased of ${number(pots[metric])}`, ", and ");
const loss = ({ amounts }, { pots }) => each(amounts, (metric) => number(amounts[metric], pots[metric] ?? amounts[metric]), " and ");

const show = (name, found, mayChange) =>
  $("shards").replaceChildren(...found.members.map((shard) => row(shard, loss(shard, found), mayChange && shard.name !== found.shard ? lose(name, shard, mayChange) : null)));

function lose(name, { name: shard, is_away: isAway }, mayChange) {
  if (isAway) return null;
  const button = element("button", { type: "button" }, "Stop waiting");
  button.onclick = () => confirmLoss(name, shard, ({ hub }) => show(name, hub, mayChange));
  return button;
}

function row({ name, lease, rounds, through, is_away: isAway, lost, lost_by: by }, amount, button) {
  const state = isAway ? element("span", { class: "quiet" }, lost == null ? " away: it has left" : " away: nobody waits for it") : null;
  const text = `may lose ${amount} under lease ${count(lease)}; ${count(rounds)} decisions handed in, until ${latest(through)}`;
  const why = lost == null ? null : element("dd", { class: "quiet" }, element("q", {}, lost), ` ${by || "unattributed"}`);
  return element("div", { class: "shard" }, element("dt", {}, name, state), element("dd", {}, text), why, button ? element("dd", {}, button) : null);
}

// What a server counts is of its newest lease alone: sums since the start, and the lift, are known where servers meet.
export const withoutSums = (point) => ({ ...point, estimated_reward: null, estimated_baseline: null, reward_interval: [null, null], surplus_interval: [null, null] });

// The floor as it was declared: of what a reserve grants, all may be lost in addition.
export function floorWords({ alpha, "constraint.reserve": granted }) {
  const less = granted ? `, less the ${number(granted)} of the reserve` : "";
  return `the floor, ${precisely(1 - alpha)} of what the baseline would have earned${less}`;
}

export function sharedVerdict({ rounds, margin, is_refuted: isRefuted }, declared) {
  if (!rounds) return "No decisions yet.";
  if (isRefuted) return "The data contradict what was declared. Only the baseline plays, on all servers, and the floor is not proved any more.";
  const kept = `All servers together have earned at least ${floorWords(declared)}, in expectation. That is ${precisely(1 - declared.delta)} certain, if what was declared is true.`;
  return `${kept} ${margin == null ? "On this server the learner has not played yet." : `This server may lose ${number(margin)} more under its lease.`}`;
}

export const SHARED_WORDS = { guaranteed: "What this server may still lose, by its lease" };

export const leaseTile = ({ margin }, tile) =>
  tile("Left of this lease", margin == null ? "\u2013" : number(margin), margin == null ? "the learner has not played here" : "this server may still lose so much", "is-margin");
