/* Keys of the sample page, filters that submit on change, and the live page's polling. */
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

  // pictures open in place: a click shows all pixels, arrows step through them, Escape closes
  const pictures = Array.from(document.querySelectorAll("a[data-zoom]"));
  if (pictures.length) {
    const dialog = document.createElement("dialog");
    dialog.className = "zoom";
    dialog.innerHTML = '<img alt=""><form method="dialog"><button type="submit">Close</button></form>';
    document.body.append(dialog);
    const image = dialog.querySelector("img");
    let shown = 0;
    const show = (number) => {
      shown = (number + pictures.length) % pictures.length;
      image.src = pictures[shown].href;
      image.alt = pictures[shown].querySelector("img").alt;
      dialog.setAttribute("aria-label", image.alt);
    };
    pictures.forEach((link, number) => link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a tab of its own
      event.preventDefault();
      show(number);
      dialog.classList.remove("whole");
      dialog.showModal();
    }));
    image.addEventListener("click", (event) => {
      const [x, y] = [event.offsetX / image.clientWidth, event.offsetY / image.clientHeight];
      dialog.classList.toggle("whole");
      dialog.scrollTo(x * image.clientWidth - dialog.clientWidth / 2, y * image.clientHeight - dialog.clientHeight / 2);
    });
    dialog.addEventListener("keydown", (event) => {
      event.stopPropagation(); // the page's keys rest
      if (event.key === "ArrowRight") show(shown + 1);
      if (event.key === "ArrowLeft") show(shown - 1);
    });
  }

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
