// Looking back: the page as it stood at an earlier point, with the decisions and beliefs of then.

import { ask, of } from "./api.js";

const PATIENCE_MS = 150; // somebody may still be moving the slider

// The summary with everything that a point knows in place of what is so now.
export function standingAt(summary, point) {
  const { estimated: estimated_reward, baseline: estimated_baseline } = point;
  if (!summary.guard) return { ...summary, ...point, estimated_reward, estimated_baseline, held_up_by: null };
  const { share, allowed, binds, banks, means, lifts } = point;
  const metrics = summary.guard.metrics.map((metric) => metricAt(metric, { bank: banks[metric.name], binds: metric.name === binds, means: means[metric.name], lifts: lifts[metric.name] }));
  return { ...summary, ...point, held_up_by: null, guard: { ...summary.guard, share, allowed, binds, metrics } };
}

function metricAt(metric, { bank, binds, means: [learner_mean, baseline_mean], lifts: [lift_low, lift_high] }) {
  return { ...metric, bank, binds, learner_mean, baseline_mean, lift_low, lift_high };
}

// Asks for what a point does not hold, once somebody stays there; what comes for another point is dropped.
let waiting = null, wanted = null;
export function recall(name, events, isWanted, show) {
  const key = `${name} ${events}`;
  if (wanted === key) return;
  wanted = key;
  clearTimeout(waiting);
  waiting = setTimeout(async () => {
    try {
      const [{ decisions }, beliefs] = await Promise.all([ask(of(name, `/decisions?limit=20&until=${events}`)), ask(of(name, `/beliefs?until=${events}`))]);
      if (wanted === key && isWanted()) show({ decisions, beliefs });
    } catch {
      if (wanted === key) wanted = null; // asked again when somebody moves
    }
  }, PATIENCE_MS);
}

export function stopRecalling() {
  clearTimeout(waiting);
  wanted = null;
}
