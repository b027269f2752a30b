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
  $set("shards-note", `${number(found.leased, found.pot)} is leased of ${number(found.pot)} that may be lost in all. This server is ${found.shard}.`);
  show(name, found, mayChange);
}

const show = (name, found, mayChange) =>
  $("shards").replaceChildren(...found.shards.flatMap((shard) => row(shard, found.pot, mayChange && shard.name !== found.shard ? lose(name, shard, mayChange) : null)));

function lose(name, { name: shard, is_away: isAway }, mayChange) {
  if (isAway) return null;
  const button = element("button", { type: "button" }, "Stop waiting");
  button.onclick = () => confirmLoss(name, shard, (found) => show(name, found, mayChange));
  return button;
}

const row = ({ name, amount, lease, rounds, through, is_away: isAway }, pot, button) => [
  element("dt", {}, name, isAway ? element("span", { class: "quiet" }, " away") : null),
  element("dd", {}, `may lose ${number(amount, pot)} under lease ${count(lease)}; ${count(rounds)} decisions handed in, until ${clock(through)} `, button),
];
