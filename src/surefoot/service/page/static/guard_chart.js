// The picture of a guard: the share of the proposal and what is proved safe, over the decisions; and a bank as a small line.

import { BOTTOM, GAP, LEFT, RIGHT, STRIP, TOP, add, decisionAxis, nearest, scale, strip, ticks } from "./chart.js";
import { exactly } from "./words.js";

export const SHARES = ["share", "allowed"];

export function drawShare(svg, points, { at }) {
  const width = svg.clientWidth, height = svg.clientHeight;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  if (!points.length || !width) return () => 0;
  const bottom = height - BOTTOM - STRIP - GAP;
  const x = scale(0, Math.max(10, points.at(-1).rounds), LEFT, width - RIGHT);
  const y = scale(0, highest(points), bottom, TOP);
  for (const value of ticks(0, y.high, Math.max(2, (bottom - TOP) / 46))) {
    add(svg, "line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) });
    add(svg, "text", { class: "tick", x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, exactly(value));
  }
  decisionAxis(svg, { x, width, height });
  lines(svg, points, x, y, bottom);
  strip(svg, points, x, { top: bottom + GAP, bottom: height - BOTTOM });
  cursor(svg, points[at], { x, y, bottom: height - BOTTOM, isLast: at === points.length - 1 });
  return (pixel) => nearest(points, x.back(pixel));
}

// A share of 2% must be seen, and one of 98% must fit.
function highest(points) {
  const most = Math.max(...points.map(({ guard }) => Math.max(guard.share, Math.min(guard.allowed, 1))));
  return Math.min(1, Math.max(0.05, most * 1.15));
}

// A share holds from one decision to the next, so its line is drawn in steps.
function lines(svg, points, x, y, bottom) {
  for (const name of [...SHARES].reverse()) {
    const seen = points.flatMap((point, i) => {
      const down = y(Math.min(point.guard[name], y.high));
      return i ? [[x(point.rounds), y(Math.min(points[i - 1].guard[name], y.high))], [x(point.rounds), down]] : [[x(point.rounds), down]];
    });
    const path = seen.map((pair) => pair.join(",")).join(" ");
    const left = seen[0][0], right = seen.at(-1)[0];
    if (name === "share") add(svg, "polygon", { class: "margin", points: `${left},${bottom} ${path} ${right},${bottom}` });
    add(svg, "polyline", { class: `line ${name}`, points: path });
  }
}

function cursor(svg, point, { x, y, bottom, isLast }) {
  const across = x(point.rounds);
  if (!isLast) add(svg, "line", { class: "cursor", x1: across, x2: across, y1: TOP, y2: bottom });
  for (const name of SHARES) add(svg, "circle", { class: `dot ${name}`, cx: across, cy: y(Math.min(point.guard[name], y.high)), r: 3.5 });
}

// What a metric's bank held over time, with the line at 0 where it must not end.
export function drawBank(svg, points, name) {
  const values = points.map(({ guard }) => guard.metrics[name].bank);
  svg.setAttribute("viewBox", "0 0 200 40");
  svg.setAttribute("preserveAspectRatio", "none");
  if (!values.length) return;
  const low = Math.min(0, ...values), high = Math.max(...values, low + 1e-9);
  const x = scale(0, Math.max(1, points.at(-1).rounds), 0, 200), y = scale(low, high, 38, 2);
  add(svg, "line", { class: "zero", x1: 0, x2: 200, y1: y(0), y2: y(0) });
  const path = points.map((point, i) => `${x(point.rounds)},${y(values[i])}`).join(" ");
  add(svg, "polyline", { class: "bank", points: path });
}
