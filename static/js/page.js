// What moves on a page: countdowns, copy buttons, and arrow keys inside a row of buttons.
(() => {
  "use strict";

  // Countdowns: the words change once a minute at most; the server wrote the first ones.
  const words = (minutes) => {
    const days = Math.floor(minutes / 1440), hours = Math.floor((minutes % 1440) / 60), rest = minutes % 60;
    if (days) return hours ? `${days} d ${hours} h` : `${days} d`;
    if (hours) return rest && hours < 12 ? `${hours} h ${rest} min` : `${hours} h`;
    return `${rest} min`;
  };
  const count = () => {
    for (const time of document.querySelectorAll("[data-countdown]")) {
      const left = Date.parse(time.dateTime) - Date.now();
      const text = left > 0 ? words(Math.floor(left / 60000)) : time.dataset.countdown;
      if (time.textContent !== text) time.textContent = text;
    }
  };
  setInterval(count, 15000);

  // Copy: the text stands in the same box; without the clipboard it is selected instead.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (!button) return;
    const text = button.closest(".copy").querySelector("[data-copy-text]");
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(text);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });

  // A row of buttons is one tab stop; arrows, Home and End move inside it.
  const settle = (root) => {
    for (const group of root.querySelectorAll?.("[data-roving]") ?? []) {
      const items = [...group.querySelectorAll("button")];
      const stop = items.find((item) => item.getAttribute("aria-pressed") === "true") ?? items[0];
      for (const item of items) item.tabIndex = item === stop ? 0 : -1;
    }
  };
  document.addEventListener("keydown", (event) => {
    const group = event.target.closest?.("[data-roving]");
    if (!group || event.ctrlKey || event.metaKey || event.altKey) return;
    const items = [...group.querySelectorAll("button")], at = items.indexOf(event.target);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: items.length - 1 }[event.key];
    if (to === undefined || !items[to]) return;
    event.preventDefault();
    for (const item of items) item.tabIndex = -1;
    items[to].tabIndex = 0;
    items[to].focus();
  });
  document.addEventListener("htmx:load", (event) => { settle(event.target.parentNode ?? document); count(); });
  settle(document);
  count();
})();
