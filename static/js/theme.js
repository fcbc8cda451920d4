// Which theme? Runs before the first paint; the choice is kept in this browser.
(() => {
  "use strict";
  const root = document.documentElement;
  const read = () => { try { return localStorage.getItem("berth.theme") || "auto"; } catch { return "auto"; } };
  const show = (choice) => {
    if (choice === "auto") delete root.dataset.theme; else root.dataset.theme = choice;
    for (const button of document.querySelectorAll("[data-theme-choice]"))
      button.setAttribute("aria-pressed", String(button.dataset.themeChoice === choice));
    document.dispatchEvent(new CustomEvent("berth:theme"));
  };
  show(read());
  document.addEventListener("DOMContentLoaded", () => show(read()));
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-theme-choice]");
    if (!button) return;
    try { localStorage.setItem("berth.theme", button.dataset.themeChoice); } catch { /* private window: this page only */ }
    show(button.dataset.themeChoice);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new CustomEvent("berth:theme")));
})();
