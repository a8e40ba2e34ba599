/* Keys of the sample page, filters that submit on change, and the live page's polling. */
(() => {
  "use strict";
  // keys follow links that say which keys they have
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    if (document.querySelector("dialog[open]")) return; // the page's keys rest
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
    const parts = (root) => new Map(Array.from(root.querySelectorAll("[data-live]"), (one) => [one.dataset.live, one]));
    const show = (text) => {
      const fresh = new DOMParser().parseFromString(text, "text/html").body; // escaped by the server; scripts do not run
      const [old, made] = [parts(place), parts(fresh)];
      if (Array.from(old.keys()).join() !== Array.from(made.keys()).join() || old.size === 0) {
        place.replaceChildren(...fresh.childNodes);
        return;
      }
      // what has focus, is open or is scrolled stays: only contents change
      for (const [name, element] of made) {
        if (old.get(name).innerHTML !== element.innerHTML) old.get(name).replaceChildren(...element.childNodes);
      }
    };
    const poll = async () => {
      try {
        const answer = await fetch("live-part.html", { cache: "no-store" });
        if (!answer.ok) throw new Error(String(answer.status));
        show(await answer.text());
        status.textContent = "";
      } catch {
        status.textContent = "The server does not answer; has medtasks view been stopped?";
      }
      setTimeout(poll, 2000);
    };
    setTimeout(poll, 2000);
  }
})();
