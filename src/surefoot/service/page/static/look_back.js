// Looking back: a point is the status of then; its decisions and beliefs have to be asked for.

import { ask, of } from "./api.js";

const PATIENCE_MS = 150; // somebody may still be moving the slider

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
