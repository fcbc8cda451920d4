// Single keys: off while typing, and off for good where a person says so. A key only moves or opens; nothing is sent.
(() => {
  "use strict";
  const GO = { h: "Home", b: "Board", r: "Reservations", t: "Teams", f: "Fleet", c: "Clusters", p: "Reports" };
  const OPEN = { a: "approve", r: "reject", c: "offer", ".": "actions" };
  const store = {
    get on() { try { return localStorage.getItem("berth.keys") !== "off"; } catch { return true; } },
    set on(value) { try { localStorage.setItem("berth.keys", value ? "on" : "off"); } catch { /* this page only */ } },
  };
  let going = 0;

  const typing = (target) => target.closest?.("input:not([type=checkbox],[type=radio]),textarea,select,[contenteditable]");
  const rows = () => [...document.querySelectorAll("[data-row]")];
  const focusable = (row) => row.matches("a,button") ? row : row.querySelector("a,button,input");
  const step = (by) => {
    const all = rows(), at = all.findIndex((row) => row.contains(document.activeElement));
    const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by];
    if (next) { focusable(next)?.focus(); next.scrollIntoView({ block: "nearest" }); }
  };
  const go = (name) => [...document.querySelectorAll(".top nav a")].find((link) => link.textContent === name)?.click();
  const open = (deed) => {
    const button = document.querySelector(`[data-key="${deed}"]`);
    if (!button) return false;
    if (button.matches("textarea,input")) button.focus(); else button.click();
    document.querySelector("[popover]:popover-open textarea")?.focus();
    return true;
  };

  document.addEventListener("keydown", (event) => {
    if (!store.on || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    const key = event.key;
    if (going && event.timeStamp - going < 1200 && GO[key]) { going = 0; event.preventDefault(); return go(GO[key]); }
    going = 0;
    if (key === "g") { going = event.timeStamp; return; }
    if (key === "/") { event.preventDefault(); document.getElementById("find")?.focus(); return; }
    if (key === "?") return document.getElementById("key-list")?.togglePopover();
    if (key === "n") return void document.querySelector('[data-key="reserve"]')?.click();
    if (key === "j" || key === "k") return step(key === "j" ? 1 : -1);
    if (key === "x") {
      const box = document.activeElement.closest?.("[data-row]")?.querySelector("input[type=checkbox]");
      if (box) box.click();
      return;
    }
    if (OPEN[key] && open(OPEN[key])) event.preventDefault();
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-keys-switch]")) store.on = event.target.checked;
  });
  for (const box of document.querySelectorAll("[data-keys-switch]")) box.checked = store.on;
})();
