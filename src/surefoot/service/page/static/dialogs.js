// The dialogs: a token, the confirmation of a change of mode, the answer to an alarm, and a shard that is gone.

import { Problem, ask, of, token } from "./api.js";
import { ANSWERS, meaning, verb } from "./parts.js";
import { $ } from "./words.js";

// Ask for a token until one opens the door; resolves when there is a new one, or none any more.
export function askForToken(fault = "") {
  const dialog = $("token-dialog"), field = $("token");
  field.value = "";
  $("token-fault").textContent = fault;
  $("token-forget").hidden = !token.get();
  if (!dialog.open) dialog.showModal();
  return new Promise((done) => {
    const close = (act) => (event) => {
      event.preventDefault();
      act();
      dialog.close();
      done();
    };
    dialog.querySelector("form").onsubmit = close(() => token.set(field.value.trim()));
    $("token-forget").onclick = close(() => token.forget());
    dialog.oncancel = close(() => {});
  });
}

export function confirmMode({ name, guard }, mode, onChanged) {
  confirm({
    title: `${verb(mode)} in ${name}?`,
    text: `The mode becomes “${mode}”. ${meaning(mode, Boolean(guard))}`,
    button: verb(mode),
    send: (reason) => ask(of(name, "/mode"), { method: "PUT", body: { mode, reason } }),
    onChanged,
  });
}

export function confirmAnswer(name, response, round, onChanged) {
  const { verb: button, means: text } = ANSWERS[response];
  confirm({
    title: `${button} in ${name}?`,
    text,
    button,
    needsReason: true,
    send: (reason) => ask(of(name, "/acknowledgements"), { method: "POST", body: { response, reason, alarm_round: round } }),
    onChanged,
  });
}

export function confirmLoss(name, shard, onChanged) {
  confirm({
    title: `Stop waiting for ${shard}?`,
    text: "Its lease stays charged, and its open rounds are not learned. Only for a machine that is gone, and not because of what its rewards were.",
    button: "Stop waiting",
    needsReason: true,
    send: (reason) => ask(of(name, `/shards/${encodeURIComponent(shard)}/loss`), { method: "POST", body: { reason } }),
    onChanged,
  });
}

function confirm({ title, text, button, send, onChanged, needsReason = false }) {
  const dialog = $("confirm-dialog"), confirm = $("confirm"), fault = $("confirm-fault"), reason = $("confirm-reason");
  $("confirm-title").textContent = title;
  $("confirm-text").textContent = text;
  reason.value = "";
  reason.required = needsReason;
  fault.textContent = "";
  confirm.textContent = button;
  $("confirm-cancel").onclick = () => dialog.close();
  dialog.querySelector("form").onsubmit = async (event) => {
    event.preventDefault();
    confirm.disabled = true;
    try {
      onChanged(await send(reason.value));
      dialog.close();
    } catch (error) {
      fault.textContent = error instanceof Problem ? error.message : "The server could not be reached; nothing is known to have changed.";
    } finally {
      confirm.disabled = false;
    }
  };
  dialog.showModal();
}
