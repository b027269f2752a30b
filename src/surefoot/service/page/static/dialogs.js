// The two dialogs: a token, and the confirmation of a change of mode.

import { Problem, ask, of, token } from "./api.js";
import { meaning, verb } from "./parts.js";
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

export function confirmMode(name, mode, onChanged) {
  const dialog = $("mode-dialog"), confirm = $("mode-confirm"), fault = $("mode-fault");
  $("mode-title").textContent = `${verb(mode)} in ${name}?`;
  $("mode-text").textContent = `The mode becomes “${mode}”. ${meaning(mode)}`;
  $("mode-reason").value = "";
  fault.textContent = "";
  confirm.textContent = verb(mode);
  $("mode-cancel").onclick = () => dialog.close();
  dialog.querySelector("form").onsubmit = async (event) => {
    event.preventDefault();
    confirm.disabled = true;
    try {
      onChanged(await ask(of(name, "/mode"), { method: "PUT", body: { mode, reason: $("mode-reason").value } }));
      dialog.close();
    } catch (error) {
      fault.textContent = error instanceof Problem ? error.message : "The server could not be reached; nothing is known to have changed.";
    } finally {
      confirm.disabled = false;
    }
  };
  dialog.showModal();
}
