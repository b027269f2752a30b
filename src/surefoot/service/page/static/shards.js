// Shards that share the experiment's floor: what each is leased, and that the sum stays within what is proved.

import { ask, of } from "./api.js";
import { confirmLoss } from "./dialogs.js";
import { $, $set, clock, count, element, number } from "./words.js";

const alone = new Set(); // experiments with one ledger need not be asked again

export async function showShards(name, isChosen, mayChange) {
  if (alone.has(name)) return void ($("shards-panel").hidden = true);
  const found = await ask(of(name, "/shards"));
  if (found.shard == null) alone.add(name);
  if (!isChosen()) return;
  $("shards-panel").hidden = found.shard == null;
  const known = found.pot == null ? "The hub does not answer, so this is the newest lease of this server alone" : `${sums(found)} that may be lost in all`;
  $set("shards-note", `${known}. This server is ${found.shard}.`);
  $("shards-error").hidden = found.error == null;
  $set("shards-error", found.error == null ? "" : `The lease of this server was not renewed: ${found.error}`);
  show(name, found, mayChange);
}

const share = ({ leased, pot }) => `${number(leased, pot)} is leased of ${number(pot)}`;
const isPlain = (banks) => Object.keys(banks).length < 2; // of one bank the name says nothing

// A guard with several metrics has a bank of each.
const sums = (found) => isPlain(found.banks) ? share(found) : Object.entries(found.banks).map(([metric, bank]) => `${share(bank)} ${metric}`).join(", and ");

const loss = ({ amount, amounts }, { pot, banks }) =>
  isPlain(pot == null ? amounts : banks) ? number(amount, pot ?? amount) : Object.entries(amounts).map(([metric, one]) => `${number(one, banks[metric]?.pot ?? one)} ${metric}`).join(" and ");

const show = (name, found, mayChange) =>
  $("shards").replaceChildren(...found.shards.flatMap((shard) => row(shard, loss(shard, found), mayChange && shard.name !== found.shard ? lose(name, shard, mayChange) : null)));

function lose(name, { name: shard, is_away: isAway }, mayChange) {
  if (isAway) return null;
  const button = element("button", { type: "button" }, "Stop waiting");
  button.onclick = () => confirmLoss(name, shard, (found) => show(name, found, mayChange));
  return button;
}

const row = ({ name, lease, rounds, through, is_away: isAway }, amount, button) => [
  element("dt", {}, name, isAway ? element("span", { class: "quiet" }, " away") : null),
  element("dd", {}, `may lose ${amount} under lease ${count(lease)}; ${count(rounds)} decisions handed in, until ${clock(through)} `, button),
];
