// Elements, and numbers in words: what the other modules write with.

export const $ = (id) => document.getElementById(id);

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const rough = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 2 });

// As many decimals as matter beside numbers of this size: 0.00005 of 400 is 0.
const decimals = (size) => Math.min(8, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(size) || 1))));

export function number(value, size = value, { isFixed = false } = {}) {
  if (value == null) return "–";
  const digits = decimals(size);
  const text = value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: isFixed ? digits : 0 });
  return text.replace(/^-0$/, "0").replace("-", "\u2212");
}

// A number in the unit that was declared: a word, or a currency by its code.
export const isMoney = (unit) => /^[A-Z]{3}$/.test(unit ?? "");

// Where metrics have names, each may have a unit.
export const unitOf = (name, { reward_unit: unit }) => (typeof unit === "object" ? unit[name] : unit) ?? "";

export function amount(value, unit = "", size = value) {
  if (!isMoney(unit)) return unit ? `${number(value, size)} ${unit}` : number(value, size);
  const digits = decimals(size), whole = digits ? { minimumFractionDigits: 2, maximumFractionDigits: Math.max(2, digits) } : { maximumFractionDigits: 0 };
  return value.toLocaleString("en", { style: "currency", currency: unit, ...whole }).replace("-", "\u2212");
}

// An amount of money with its currency, and all else as a number alone.
export const sum = (value, unit, size = value) => (value != null && isMoney(unit) ? amount(value, unit, size) : number(value, size));

export const $set = (id, text) => {
  if ($(id).textContent !== text) $(id).textContent = text; // what stays the same is not announced again
};

export const count = (value) => whole.format(value);
export const percent = (value) => (value == null ? "–" : rough.format(value));
export const exactly = (value) => fine.format(value);
export const share = (value) => (value < 0.1 ? exactly(Math.round(value * 1000) / 1000) : percent(value));
export const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hourCycle: "h23" }); // hour12: false may say 24:00

// With as many digits as tell it from 1: nothing is 100% certain.
export function precisely(value) {
  const digits = Math.min(16, Math.max(2, Math.ceil(-Math.log10(Math.abs(1 - value))) - 1));
  return value.toLocaleString("en", { style: "percent", maximumFractionDigits: digits });
}

export const sure = (probability) => `${precisely(probability)} sure, however often you look`;

// Of a lift or a margin, with its sign.
export const signed = (value, size) => (value == null ? "\u2013" : `${value > 0 ? "+" : ""}${number(value, size)}`);

export const when = (seconds) => new Date(seconds * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" });

// The time alone for what was less than half a day ago, as a rule; else with its date.
export const latest = (seconds) => (Math.abs(Date.now() / 1000 - seconds) < 43200 ? clock(seconds) : when(seconds));

export function value(given) {
  if (given === null) return "none";
  if (Array.isArray(given)) return given.map(value).join(" to ");
  return typeof given === "number" ? String(given) : JSON.stringify(given);
}

export const MODES = {
  shadow: "Only today's choice is played. The learner watches.",
  guarded: "The learner plays wherever that is proved to be safe, and today's choice is played elsewhere.",
  paused: "Only today's choice is played. The learner is stopped, and keeps learning from what it sees.",
};
