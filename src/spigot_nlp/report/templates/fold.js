// Folded parts open for links, for printers, and all at once.
"use strict";
(() => {
  const all = () => [...document.querySelectorAll("details")];

  /** Open whatever the target of the address is folded into, and go there. */
  function reveal() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    target.scrollIntoView();
  }

  window.addEventListener("hashchange", reveal);
  // A link to where the address is already changes nothing, but the reader may have folded it since.
  document.addEventListener("click", (event) => { if (event.target.closest?.("a[href^='#']")) setTimeout(reveal); });
  if (location.hash) reveal();

  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = all().filter((fold) => !fold.open);
    for (const fold of opened) fold.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const fold of opened) fold.open = false;
    opened = [];
  });

  for (const button of document.querySelectorAll("[data-unfold]")) {
    const folds = () => [...document.querySelectorAll("details.fold")];
    const name = () => { button.textContent = folds().every((fold) => fold.open) ? "close all" : "open all"; };
    button.hidden = false;
    button.addEventListener("click", () => {
      const open = !folds().every((fold) => fold.open);
      for (const fold of folds()) fold.open = open;
    });
    for (const fold of folds()) fold.addEventListener("toggle", name);
  }
})();
