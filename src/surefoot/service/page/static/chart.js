// The picture: floor, guaranteed and estimated reward over the decisions, and beneath it who was playing.
// Drawn as plain SVG: the page's policy forbids inline styles, and a picture of four lines needs no library.

const SPACE = "http://www.w3.org/2000/svg";
export const LEFT = 46, RIGHT = 14, TOP = 16, STRIP = 30, GAP = 36, BOTTOM = 40;

// What is drawn, and the field of a status that holds it.
const FIELDS = { estimated: "estimated_reward", guaranteed: "guaranteed", baseline: "estimated_baseline", floor: "floor" };
export const SERIES = Object.keys(FIELDS);

const of = {
  total: (value) => value,
  above: (value, { floor }) => (floor == null ? null : value - floor),
  each: (value, { rounds }) => (rounds ? value / rounds : null),
};
export const read = (point, name, view) => (point[FIELDS[name]] == null ? null : of[view](point[FIELDS[name]], point));

// The learner's share of the decisions shortly before each point.
export function lately(points) {
  const last = points.at(-1)?.rounds ?? 0;
  const span = Math.max(40, last * 0.05);
  let from = 0;
  return points.map((point) => {
    while (from + 1 < points.length && points[from + 1].rounds <= point.rounds - span) from += 1;
    const before = points[from].rounds <= point.rounds - span ? points[from] : { rounds: 0, learner_share: 0 };
    const rounds = point.rounds - before.rounds;
    return rounds ? (point.learner_share * point.rounds - before.learner_share * before.rounds) / rounds : 0;
  });
}

export function draw(svg, points, { view, at }) {
  const width = svg.clientWidth, height = svg.clientHeight;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  if (!points.length || !width) return () => 0;
  const floor = height - BOTTOM - STRIP - GAP;
  const x = scale(0, Math.max(10, points.at(-1).rounds), LEFT, width - RIGHT);
  const y = vertical(points, view, floor);
  grid(svg, { x, y, width, floor, height });
  uncertainty(svg, points, view, x, y);
  band(svg, points, view, x, y);
  for (const name of [...SERIES].reverse()) line(svg, points, name, view, x, y);
  strip(svg, points, x, { top: floor + GAP, bottom: height - BOTTOM });
  cursor(svg, points[at], { view, x, y, width, bottom: height - BOTTOM, isLast: at === points.length - 1 });
  return (pixel) => nearest(points, x.back(pixel));
}

export function scale(low, high, from, to) {
  const put = (value) => from + ((value - low) / (high - low)) * (to - from);
  return Object.assign(put, { low, high, back: (pixel) => low + ((pixel - from) / (to - from)) * (high - low) });
}

function vertical(points, view, bottom) {
  // Averages over the first few decisions swing too wide to say anything: they do not set the scale.
  const settled = view === "each" ? points.filter((point) => point.rounds >= 30) : points;
  const shown = settled.length ? settled : points;
  const values = shown
    .flatMap((point) => SERIES.map((name) => read(point, name, view)))
    .filter((value) => value != null);
  let low = Math.min(0, ...values), high = Math.max(...values, low + 1e-9);
  if (view === "each") low = Math.min(...values), high = Math.max(...values);
  if (high - low < 1e-6) high = low + 1;
  // What is shaded has room, but not so much that the lines can no longer be told apart.
  const shaded = shown.flatMap((point) => shadedEnds(point, view) ?? []);
  high = Math.min(Math.max(high, ...shaded), high + (high - low));
  const room = (high - low) * 0.08;
  return scale(low < 0 || view === "each" ? low - room : low, high + room, bottom, TOP);
}

export function ticks(low, high, most) {
  const raw = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw);
  const found = [];
  for (let n = Math.ceil(low / step); n * step <= high; n += 1) found.push(n * step);
  return found;
}

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const label = (value) => compact.format(Math.abs(value) < 1e-12 ? 0 : value).replace("-", "\u2212");

function grid(svg, { x, y, width, floor, height }) {
  for (const value of ticks(y.low, y.high, Math.max(2, (floor - TOP) / 46))) {
    add(svg, "line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) });
    add(svg, "text", { class: "tick", x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, label(value));
  }
  decisionAxis(svg, { x, width, height });
}

export function decisionAxis(svg, { x, width, height }) {
  for (const value of ticks(0, x.high, Math.max(2, (width - LEFT) / 90))) {
    const anchor = x(value) > width - RIGHT - 16 ? "end" : "middle";
    add(svg, "text", { class: "tick", x: x(value), y: height - BOTTOM + 16, "text-anchor": anchor }, label(value));
  }
  add(svg, "text", { class: "tick", x: (LEFT + width - RIGHT) / 2, y: height - 6, "text-anchor": "middle" }, "decisions");
}

// What the estimate may be off by: the interval of what was earned. It fades where it goes on above the picture.
const ends = {
  total: ({ reward_interval: reward }) => reward,
  above: ({ surplus_interval: surplus }) => surplus,
  each: ({ reward_interval: reward, rounds }) => reward.map((end) => (end == null || !rounds ? null : end / rounds)),
};

function shadedEnds(point, view) {
  const found = read(point, "estimated", view) == null ? [null] : ends[view](point);
  return found[0] == null ? null : found;
}

function uncertainty(svg, points, view, x, y) {
  const known = parts(points, (point) => shadedEnds(point, view));
  const values = known.flat().flatMap((point) => shadedEnds(point, view));
  fade(svg, y(y.low), Math.max(...values) > y.high);
  for (const part of known) {
    const upper = part.map((point) => `${x(point.rounds)},${y(shadedEnds(point, view)[1])}`);
    const lower = part.map((point) => `${x(point.rounds)},${y(shadedEnds(point, view)[0])}`);
    add(svg, "polygon", { class: "uncertain", mask: "url(#inside)", points: [...upper, ...lower.reverse()].join(" ") });
  }
}

// A mask that ends with the picture: softly, where something goes on above it.
function fade(svg, bottom, isCut) {
  const box = { x: LEFT, y: TOP, width: "100%", height: bottom - TOP };
  const mask = add(svg, "mask", { id: "inside", maskUnits: "userSpaceOnUse", ...box });
  const tones = add(mask, "linearGradient", { id: "edges", gradientUnits: "userSpaceOnUse", x1: 0, x2: 0, y1: TOP, y2: bottom });
  add(tones, "stop", { offset: 0, "stop-color": isCut ? "black" : "white" });
  add(tones, "stop", { offset: 0.15, "stop-color": "white" });
  add(mask, "rect", { fill: "url(#edges)", ...box });
}

// The margin: everything between the floor and what is guaranteed.
function band(svg, points, view, x, y) {
  for (const part of parts(points, (point) => point.floor != null && point.guaranteed != null)) {
    const upper = part.map((point) => `${x(point.rounds)},${y(read(point, "guaranteed", view))}`);
    const lower = part.map((point) => `${x(point.rounds)},${y(read(point, "floor", view))}`);
    add(svg, "polygon", { class: "margin", points: [...upper, ...lower.reverse()].join(" ") });
  }
}

function line(svg, points, name, view, x, y) {
  for (const part of parts(points, (point) => read(point, name, view) != null)) {
    const seen = part.map((point) => [x(point.rounds), y(read(point, name, view))]);
    const inside = seen.map(([across, down]) => `${across},${Math.min(Math.max(down, TOP), y(y.low))}`);
    add(svg, "polyline", { class: `line ${name}`, points: inside.join(" ") });
  }
}

export function strip(svg, points, x, { top, bottom }) {
  const right = x(points.at(-1).rounds), left = x(points[0].rounds);
  const tops = lately(points).map((part, i) => `${x(points[i].rounds)},${bottom - part * (bottom - top)}`);
  add(svg, "rect", { class: "with-baseline", x: left, y: top, width: Math.max(0, right - left), height: bottom - top });
  add(svg, "polygon", { class: "with-learner", points: [`${left},${bottom}`, ...tops, `${right},${bottom}`].join(" ") });
  add(svg, "text", { class: "tick strip-title", x: LEFT, y: top - 5 }, "share of traffic with the learner, lately");
  add(svg, "text", { class: "tick", x: LEFT - 8, y: top + 9, "text-anchor": "end" }, "100%");
  add(svg, "text", { class: "tick", x: LEFT - 8, y: bottom, "text-anchor": "end" }, "0%");
}

function cursor(svg, point, { view, x, y, width, bottom, isLast }) {
  const across = x(point.rounds);
  if (!isLast) add(svg, "line", { class: "cursor", x1: across, x2: across, y1: TOP, y2: bottom });
  for (const name of SERIES) {
    const value = read(point, name, view);
    if (value != null) add(svg, "circle", { class: `dot ${name}`, cx: across, cy: y(value), r: 3.5 });
  }
  if (point.floor == null || point.guaranteed == null) return;
  const from = y(read(point, "floor", view)), to = y(read(point, "guaranteed", view));
  add(svg, "line", { class: "bracket", x1: across, x2: across, y1: from, y2: to });
  if (from - to < 14) return;
  const isRight = across > width / 2;
  const place = { class: "margin-word", x: across + (isRight ? -9 : 9), y: (from + to) / 2 + 4 };
  add(svg, "text", { ...place, "text-anchor": isRight ? "end" : "start" }, "proved above the promise");
}

function parts(points, has) {
  const found = [];
  let open = null;
  for (const point of points) {
    if (!has(point)) open = null;
    else if (open) open.push(point);
    else found.push((open = [point]));
  }
  return found;
}

export function nearest(points, rounds) {
  let best = 0;
  points.forEach((point, i) => {
    if (Math.abs(point.rounds - rounds) <= Math.abs(points[best].rounds - rounds)) best = i;
  });
  return best;
}

export function add(svg, tag, attributes, text) {
  const made = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text != null) made.textContent = text;
  svg.append(made);
  return made;
}
