/* Keys of the sample page, filters that submit on change, and the live page's polling. All work without it but the last. */
(() => {
  "use strict";
  // keys follow links that say which keys they have
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    if (event.key.startsWith("Arrow") && event.target.closest("[tabindex]:not(main)")) return; // the region scrolls
    for (const link of document.querySelectorAll("a[data-key]")) {
      if (link.dataset.key.split(" ").includes(event.key)) {
        event.preventDefault();
        link.click();
        return;
      }
    }
  });

  for (const select of document.querySelectorAll("select[data-submit]")) {
    select.addEventListener("change", () => {
      const form = select.form;
      // another task has other filters
      const kept = select.name === "task" ? ["task"] : ["task", "run"];
      if (select.name === "task") for (const field of form.elements) if (field.name && !kept.includes(field.name)) field.disabled = true;
      form.requestSubmit();
    });
  }

  const place = document.getElementById("live");
  if (place) {
    const status = document.getElementById("live-status");
    let last = place.innerHTML;
    const poll = async () => {
      try {
        const answer = await fetch("live-part.html", { cache: "no-store" });
        if (!answer.ok) throw new Error(String(answer.status));
        const text = await answer.text();
        const inside = place.contains(document.activeElement) || !document.getSelection().isCollapsed;
        if (text !== last && !inside) {
          const open = new Set(Array.from(place.querySelectorAll("details[open]"), (one) => one.id));
          place.innerHTML = text; // escaped by the server, and no script in it can run
          for (const one of place.querySelectorAll("details")) one.open = open.has(one.id);
          last = text;
        }
        status.textContent = "";
      } catch {
        status.textContent = "The server does not answer; has medtasks view been stopped?";
      }
      setTimeout(poll, 2000);
    };
    setTimeout(poll, 2000);
  }
})();
