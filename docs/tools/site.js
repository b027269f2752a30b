// Copying an example takes its code alone: what follows a prompt, and not what is printed.
document.addEventListener(
  "click",
  ({ target }) => {
    const code = target.closest?.("[data-clipboard-target]")?.closest(".language-pycon")?.querySelector("code");
    if (!code) return;
    const lines = code.textContent.split("\n").filter((line) => /^(>>>|\.\.\.)( |$)/.test(line));
    target.closest("[data-clipboard-target]").dataset.clipboardText = lines.map((line) => line.slice(4)).join("\n") + "\n";
  },
  true,
);
