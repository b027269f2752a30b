// Servers that share the experiment's floor: what each is leased, and what is said of all of them instead of one.

import { ask, of } from "./api.js";
import { confirmLoss } from "./dialogs.js";
import { $, $set, count, element, latest, number, precisely } from "./words.js";

const alone = new Set(); // experiments with one ledger need not be asked again

// Shows who shares the floor, and returns what the hub says of it; null where there is one ledger.
export async function showShards(name, isChosen, mayChange) {
  if (alone.has(name)) return hide();
  const found = await ask(of(name, "/shards"));
  if (found.shard == null) alone.add(name);
  if (!isChosen()) return null;
  if (found.shard == null) return hide();
  $("shards-panel").hidden = false;
  const known = found.pot == null ? "The hub does not answer, so this is the newest lease of this server alone" : `${sums(found)} that may be lost in all`;
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

const share = ({ leased, pot }) => `${number(leased, pot)} is leased of ${number(pot)}`;
const isPlain = (banks) => Object.keys(banks).length < 2; // of one bank the name says nothing

// A guard with several metrics has a bank of each.
const sums = (found) => isPlain(found.banks) ? share(found) : Object.entries(found.banks).map(([metric, bank]) => `${share(bank)} ${metric}`).join(", and ");

const loss = ({ amount, amounts }, { pot, banks }) =>
  isPlain(pot == null ? amounts : banks) ? number(amount, pot ?? amount) : Object.entries(amounts).map(([metric, one]) => `${number(one, banks[metric]?.pot ?? one)} ${metric}`).join(" and ");

const show = (name, found, mayChange) =>
  $("shards").replaceChildren(...found.shards.map((shard) => row(shard, loss(shard, found), mayChange && shard.name !== found.shard ? lose(name, shard, mayChange) : null)));

function lose(name, { name: shard, is_away: isAway }, mayChange) {
  if (isAway) return null;
  const button = element("button", { type: "button" }, "Stop waiting");
  button.onclick = () => confirmLoss(name, shard, (found) => show(name, found, mayChange));
  return button;
}

function row({ name, lease, rounds, through, is_away: isAway, lost, lost_by: by }, amount, button) {
  const state = isAway ? element("span", { class: "quiet" }, lost == null ? " away: it has left" : " away: nobody waits for it") : null;
  const text = `may lose ${amount} under lease ${count(lease)}; ${count(rounds)} decisions handed in, until ${latest(through)}`;
  const why = lost == null ? null : element("dd", { class: "quiet" }, element("q", {}, lost), ` ${by || "nobody named"}`);
  return element("div", { class: "shard" }, element("dt", {}, name, state), element("dd", {}, text), why, button ? element("dd", {}, button) : null);
}

// What a server counts is of its newest lease alone: sums since the start, and the lift, are known where servers meet.
export const withoutSums = (point) => ({ ...point, estimated: null, baseline: null, reward: [null, null], surplus: [null, null] });

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
