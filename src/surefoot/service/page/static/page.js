// The page: chooses an experiment, follows it live, and hands what comes to the parts that show it.

import { ask, follow, isNoToken, of, token } from "./api.js";
import { SERIES, draw, read } from "./chart.js";
import { SHARES, drawShare } from "./guard_chart.js";
import * as guards from "./guard_parts.js";
import { askForToken, confirmAnswer, confirmMode } from "./dialogs.js";
import { liftLine, nextLine, showAnswer } from "./lift.js";
import { recall, stopRecalling } from "./look_back.js";
import * as parts from "./parts.js";
import { riskLine } from "./risk.js";
import { SHARED_WORDS, isAway, showShards, withoutSums } from "./shards.js";
import { $, $set, clock, count, element, number, precisely, share, when } from "./words.js";

const GLANCE_MS = 2000;
const MOST_POINTS = 1024;
const MOST_CHANGES = 12;
const FEW_EXPERIMENTS = 8; // which need no finding
const WORDS = { estimated: "Estimated; shaded: where it may lie", guaranteed: "At least this, proved", baseline: "Today's choice alone, estimated", share: "Share of the learner", allowed: "Proved safe up to" };
const STATES = { live: "live", asking: "live (polling)", lost: "connection lost, trying again", connecting: "connecting" };

const page = { access: null, experiments: [], damaged: [], chosen: null, status: null, points: [], declared: null, decisions: [], beliefs: null, alarms: [], changes: [], shared: null, following: null };
// `at`: the event of the point that is looked back at, null for now; `peek`: the place of the one under the pointer
const sight = { view: "above", at: null, peek: null, find: () => 0, isHeld: false };

async function enter() {
  for (;;) {
    try {
      page.access = await ask("/v1/access");
      $("token-button").hidden = page.access.is_open;
      const soon = Object.entries(page.access.expiring).map(([id, at]) => `${id} on ${new Date(1000 * at).toLocaleDateString("en", { dateStyle: "medium" })}`);
      $("expiring").hidden = !soon.length;
      $("expiring").textContent = `Tokens that expire soon: ${soon.join(", ")}.`;
      return;
    } catch (error) {
      if (isNoToken(error)) await askForToken(token.get() ? "This token is not valid here." : "");
      else await pause(GLANCE_MS, "lost");
    }
  }
}

function pause(milliseconds, state) {
  if (state) show(state);
  return new Promise((done) => setTimeout(done, milliseconds));
}

function show(state) {
  const place = $("connection");
  if (place.dataset.state !== state) place.textContent = STATES[state];
  place.dataset.state = state;
}

async function glance() {
  if (document.hidden) return;
  try {
    ({ experiments: page.experiments, damaged: page.damaged } = await ask("/v1/experiments"));
    page.experiments = page.experiments.map(asShown).sort((one, other) => other.is_refuted - one.is_refuted);
    if (!page.following) show("live");
    cards();
    choose();
    if (page.chosen && !page.declared) await declare(page.chosen);
    if (page.chosen && page.status) await changes(page.chosen, page.status.events);
    const { chosen } = page;
    if (chosen) await shards(chosen);
  } catch (error) {
    if (isNoToken(error)) return restart();
    show(error.status === 403 ? "live" : "lost");
    if (error.status === 403) nothing("This token may not read experiments: it needs the role “read”.");
  }
}

// The card of what is shown says what the page says.
const asShown = (status) => (status.name === page.chosen && page.status ? page.status : status);

async function shards(chosen) {
  const found = await showShards(chosen, () => page.chosen === chosen, page.access.roles.includes("admin"));
  if (!found || page.chosen !== chosen) return;
  page.shared = found;
  if (page.status) render();
}

// Those that somebody should look at come first: damaged ones, then those with an alarm.
function cards() {
  const focused = document.activeElement?.closest?.(".card")?.getAttribute("href");
  const wanted = $("find").value.trim().toLowerCase(), isWanted = ({ name }) => name.toLowerCase().includes(wanted);
  const shown = page.experiments.filter(isWanted).map((status) => parts.card(status, status.name === page.chosen));
  const found = [...page.damaged.filter(isWanted).map(parts.damagedCard), ...shown];
  $("finder").hidden = page.experiments.length + page.damaged.length <= FEW_EXPERIMENTS && !wanted;
  $set("overview", parts.overview(page.experiments, page.damaged));
  $("experiments").replaceChildren(...(found.length || !wanted ? found : [element("p", { class: "quiet" }, "No experiment has that in its name.")]));
  if (focused) $("experiments").querySelector(`[href="${CSS.escape(focused)}"]`)?.focus();
}

// Scroll the list of experiments, and nothing else, to the one that is chosen.
function reveal(card) {
  if (!card) return;
  const list = $("experiments"), above = card.offsetTop - list.offsetTop;
  if (above < list.scrollTop || above + card.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = above;
}

function choose() {
  const names = page.experiments.map((status) => status.name);
  if (!names.length && page.damaged.length) return nothing("No experiment can be read: see the reasons above.");
  if (!names.length) return nothing("No experiments yet.", true);
  const asked = location.hash.startsWith("#/") ? names.find((name) => location.hash === `#/${encodeURIComponent(name)}`) : (page.chosen ?? names[0]);
  if (!asked) return nothing(`${unread(location.hash.slice(2))} Choose another above.`);
  if (asked !== page.chosen) begin(asked);
}

// Why the experiment of an address cannot be shown: another one in its place would be taken for it.
function unread(given) {
  const found = page.damaged.find(({ name }) => encodeURIComponent(name) === given);
  return found ? `${found.name} is damaged. ${found.reason}` : `No experiment is called ${given} here, or your token may not read it.`;
}

function nothing(text, isEmpty = false) {
  if (isEmpty) $set("begin-commands", parts.firstCommands(location.origin, !page.access.is_open));
  $("begin").hidden = !isEmpty;
  page.following?.abort();
  Object.assign(page, { chosen: null, following: null });
  document.title = "surefoot";
  $set("nothing", text);
  $("nothing").hidden = false;
  $("detail").hidden = true;
}

function begin(name) {
  Object.assign(page, { chosen: name, status: null, points: [], declared: null, decisions: [], beliefs: null, alarms: [], changes: [], shared: null });
  Object.assign(sight, { at: null, peek: null });
  stopRecalling();
  $("decisions").replaceChildren();
  $("nothing").hidden = $("begin").hidden = true;
  $("assumptions").replaceChildren();
  $("changes").replaceChildren();
  $("legend").replaceChildren();
  cards();
  reveal($("experiments").querySelector("[aria-current]"));
  listen();
}

// A browser opens six connections to a server, for all tabs together: one that nobody sees must not hold one of them.
function listen() {
  page.following?.abort();
  page.following = null;
  if (document.hidden || !page.chosen) return;
  const following = (page.following = new AbortController());
  const tell = (message, isWhole) => page.following === following && take(message, isWhole);
  const onState = (state) => page.following === following && show(state);
  follow(page.chosen, { signal: following.signal, tell, onState }).catch((error) => (isNoToken(error) ? restart() : show("lost")));
}

// Asked for when the chain has grown, and at most as often as the list of experiments is.
async function changes(name, events) {
  if (page.changesAt === `${name} ${events}`) return;
  page.changesAt = `${name} ${events}`;
  const { changes: found } = await ask(of(name, "/changes?limit=100"));
  if (name !== page.chosen) return;
  page.changes = found;
  showChanges();
}

function showChanges() {
  const known = page.changes.filter(({ event }) => sight.at == null || event <= sight.at);
  $("changes").replaceChildren(...known.slice(0, MOST_CHANGES).map(parts.change));
}

async function declare(name) {
  const { assumptions } = await ask(of(name, "/assumptions"));
  if (name !== page.chosen) return;
  page.declared = Object.fromEntries(assumptions.map(({ setting, value }) => [setting, value]));
  $("assumptions").replaceChildren(...assumptions.map(parts.assumption));
  if (page.status) render();
}

function take(message, isWhole) {
  page.status = message.status;
  const newest = isWhole ? -1 : (page.points.at(-1)?.events ?? -1);
  page.points = [...(isWhole ? [] : page.points), ...message.points.filter((point) => point.events > newest && point.rounds)];
  if (page.points.length > MOST_POINTS) page.points = thinned(page.points);
  page.decisions = [...message.decisions, ...(isWhole ? [] : page.decisions)].slice(0, parts.MOST_DECISIONS);
  Object.assign(page, { beliefs: message.beliefs, alarms: message.alarms });
  page.experiments = page.experiments.map(asShown);
  cards();
  render();
}

// What a model believes; a guard has none, and shows its metrics instead.
function learned(standing, points, beliefs) {
  const { guard } = standing;
  $set("beliefs-title", guard ? "What each metric says" : "What the learner believes");
  $("beliefs-note").textContent = guard ? guards.NOTE : parts.beliefsNote(beliefs);
  $("beliefs").replaceChildren(...(guard ? guards.metrics(standing, points) : parts.beliefs(beliefs)));
}

const thinned = (points) => points.filter((_, i) => i >= points.length / 2 || i % 2 === 0);

// The list stands still while somebody reads it.
function decisions() {
  const hovers = matchMedia("(hover: hover)").matches && $("decisions").matches(":hover");
  const isRead = hovers || $("decisions").contains(document.activeElement);
  $set("held", isRead && !sight.isHeld ? "paused while you read" : "");
  $set("hold", sight.isHeld ? "Resume" : "Pause list");
  if (!isRead && !sight.isHeld && sight.at == null) parts.addDecisions($("decisions"), page.decisions);
}

// A region that is announced must change only when there is something to announce.
function alarms(found) {
  const isAlarm = ({ level }) => level === "alarm";
  tellOf("alarms", found.filter(isAlarm));
  tellOf("notes", found.filter((one) => !isAlarm(one)));
}

function tellOf(place, found) {
  const text = JSON.stringify(found);
  if ($(place).dataset.told === text) return;
  $(place).dataset.told = text;
  $(place).replaceChildren(...found.map(parts.alarm));
}

// Where the point that is looked back at stands among the points, which are thinned out as time passes.
const placeOf = (events) => Math.max(0, page.points.findLastIndex((point) => point.events <= events));

function render() {
  if (!page.declared) return; // which says whether the floor is shared, and is on its way
  const { status } = page, isBack = sight.at != null && page.points.length > 0;
  const place = isBack ? placeOf(sight.at) : page.points.length - 1;
  const points = page.points.slice(0, place + 1);
  const standing = isShared() ? ofAll(standingNow(isBack, place), isBack) : standingNow(isBack, place);
  frame(status, standing, isBack);
  const lift = liftLine(standing, page.declared);
  showAnswer($("answer"), lift);
  showAnswer($("risk"), riskLine(standing, page.declared, points[0]));
  showAnswer($("next"), nextLine(standing, lift.answer));
  $set("verdict", parts.verdict(standing, page.declared));
  $("tiles").replaceChildren(...parts.tiles(standing, points));
  alarms(isBack ? [] : page.alarms);
  if (isBack) past(standing, points);
  else present(standing, points);
  picture();
}

const standingNow = (isBack, place) => (isBack ? page.points[place] : page.status);
const isShared = () => page.declared.skew != null && !page.status.guard; // a guard counts the rounds of all servers
const ofAll = (standing, isBack) => ({ ...standing, lift: isBack ? null : (page.shared?.lift ?? null), shared: { isBack, isAway: page.shared != null && isAway(page.shared) } });

function present(standing, points) {
  stopRecalling();
  decisions();
  learned(standing, points, page.beliefs);
}

// Decisions and beliefs of then have to be asked for; until they come, those that are shown stay.
function past(standing, points) {
  const { chosen, points: all } = page, { events } = standing, isLastWord = () => page.chosen === chosen && sight.at != null && all[placeOf(sight.at)].events === events;
  if (standing.guard) learned(standing, points, null);
  recall(chosen, events, isLastWord, ({ decisions: found, beliefs }) => {
    $("decisions").replaceChildren();
    parts.addDecisions($("decisions"), found);
    if (!standing.guard) learned(standing, points, beliefs);
  });
}

// What stands above and around the picture.
function frame(status, standing, isBack) {
  document.title = `${status.name} · surefoot`;
  $("detail").hidden = false;
  $set("name", status.name);
  const isStopped = standing.is_refuted && status.floor != null;
  $set("description", `${status.description} ${isStopped ? parts.stopped : parts.meaning(standing.mode, Boolean(status.guard))}`);
  $set("mode", standing.mode);
  $("mode").className = `mode ${standing.mode}`;
  $("back").hidden = !isBack;
  if (isBack) $set("back-when", `decision ${count(standing.rounds)}, ${when(standing.time)}`);
  $("receipt").hidden = isBack;
  $("views").hidden = Boolean(status.guard) || isShared();
  $("picture").hidden = !status.rounds;
  $("hold").hidden = isBack || !status.rounds;
  $("no-decisions").hidden = status.rounds > 0;
  modes(status);
  answers(status, isBack);
  $set("receipt-number", count(status.events));
  $set("receipt-hash", status.head_hash);
}

function modes({ mode, allowed_modes: allowed }) {
  const place = $("modes"), mayChange = page.access.roles.includes("admin");
  const key = `${page.chosen} ${mode} ${mayChange}`;
  if (place.dataset.key === key) return; // buttons that stay keep their focus
  place.dataset.key = key;
  if (mayChange) place.replaceChildren(...allowed.map(parts.modeButton));
  else place.replaceChildren(element("p", { class: "quiet" }, "An admin's token may change the mode."));
}

// What a person may answer to the alarm, if this one may.
function answers({ alarm, alarm_answer: given, alarm_responses: possible }, isBack) {
  const place = $("answers"), mayAnswer = page.access.roles.includes("admin");
  const open = isBack ? [] : possible.filter((response) => response !== given);
  const key = `${page.chosen} ${alarm} ${open} ${mayAnswer}`;
  if (place.dataset.key === key) return; // buttons that stay keep their focus
  place.dataset.key = key;
  place.hidden = !open.length;
  if (mayAnswer) place.replaceChildren(...open.map(parts.answerButton));
  else place.replaceChildren(element("p", { class: "quiet" }, "An admin's token may answer the alarm."));
}

function picture() {
  if (document.hidden) return;
  if (page.status?.guard) return guardPicture();
  if (page.declared?.skew != null) return leasePicture();
  const { points } = page, hasFloor = points.some((point) => point.floor != null);
  const at = placeShown();
  const view = sight.view === "above" && !hasFloor ? "total" : sight.view;
  sight.find = draw($("chart"), points, { view, at });
  const point = slide(at);
  if (!point) return;
  const size = Math.max(...SERIES.map((name) => Math.abs(read(point, name, view) ?? 0)));
  const words = { ...WORDS, floor: page.declared?.alpha == null ? "Promised" : `Promised: ${precisely(1 - page.declared.alpha)} of today's choice` };
  $("legend").replaceChildren(...SERIES.map((name) => legend(name, number(read(point, name, view), size), words[name])));
}

function leasePicture() {
  const points = page.points.map(withoutSums), at = placeShown();
  sight.find = draw($("chart"), points, { view: "above", at });
  const point = slide(at);
  if (point) $("legend").replaceChildren(legend("guaranteed", number(read(point, "guaranteed", "above")), SHARED_WORDS.guaranteed));
}

function guardPicture() {
  const { points } = page, at = placeShown();
  sight.find = drawShare($("chart"), points, { at });
  const point = slide(at);
  if (!point) return;
  const { guard } = point;
  const banks = Object.keys(guard.metrics).map((name) => bankLegend(name, point, name === guard.binds && guards.isLimited(guard)));
  $("legend").replaceChildren(...SHARES.map((name) => legend(name, share(Math.min(guard[name], 1)))), ...banks);
}

const placeShown = () => Math.min(sight.peek ?? (sight.at == null ? Infinity : placeOf(sight.at)), page.points.length - 1);

// Puts the slider at a point, and returns that.
function slide(at) {
  const point = page.points[at];
  $("look").max = Math.max(0, page.points.length - 1);
  $("look").value = Math.max(0, at);
  if (point) $("when").textContent = `decision ${count(point.rounds)}, ${clock(point.time)}${at === page.points.length - 1 ? ", now" : ""}`;
  return point;
}

const bankLegend = (name, point, binds) =>
  element("div", { class: "bank-legend" }, element("dt", {}, `${name} left to spend`, binds ? element("span", { class: "binds" }, "limits the share") : null), element("dd", {}, guards.left(name, point)));

const legend = (name, text, word = WORDS[name]) =>
  element("div", { class: name }, element("dt", {}, element("span", { class: "swatch" }), word), element("dd", {}, text));

// The whole page goes to a point: by the slider, or by a click into the picture.
function lookAt(index) {
  sight.at = index >= page.points.length - 1 ? null : page.points[index].events;
  sight.peek = null;
  if (sight.at == null) $("decisions").replaceChildren();
  showChanges();
  render();
}

// Under the pointer only the picture and its numbers change, so that nothing else moves.
function peekAt(index) {
  sight.peek = index;
  picture();
}

// Whoever finds first that the token opens nothing any more asks for another; the rest wait for the same answer.
let restarting = null;
function restart() {
  restarting ??= again().finally(() => ((restarting = null), glance()));
  return restarting;
}

async function again() {
  page.following?.abort();
  Object.assign(page, { chosen: null, following: null });
  $("detail").hidden = true;
  $("experiments").replaceChildren();
  await enter();
}

function wire() {
  addEventListener("hashchange", () => page.experiments.length && glance());
  addEventListener("resize", picture);
  $("find").addEventListener("input", cards);
  document.addEventListener("visibilitychange", () => (listen(), picture()));
  $("views").addEventListener("change", (event) => ((sight.view = event.target.value), picture()));
  $("look").addEventListener("input", (event) => lookAt(Number(event.target.value)));
  $("chart").addEventListener("pointermove", (event) => peekAt(sight.find(event.offsetX)));
  $("chart").addEventListener("pointerleave", () => peekAt(null));
  $("chart").addEventListener("click", (event) => page.points.length && lookAt(sight.find(event.offsetX)));
  $("back-now").addEventListener("click", () => (lookAt(Infinity), $("look").focus()));
  $("modes").addEventListener("click", ({ target }) => {
    if (target.dataset.mode) confirmMode(page.status, target.dataset.mode, (status) => ((page.status = status), render(), glance()));
  });
  $("answers").addEventListener("click", ({ target }) => {
    if (target.dataset.response) confirmAnswer(page.chosen, target.dataset.response, page.status.alarm_round, (status) => ((page.status = status), render(), glance()));
  });
  $("hold").addEventListener("click", () => {
    sight.isHeld = !sight.isHeld;
    decisions();
  });
  $("token-button").addEventListener("click", async () => (await askForToken(), restart()));
}

wire();
await enter();
for (;;) {
  await glance();
  await pause(GLANCE_MS);
}
