/* Keys, time and saving of the rating page. Without this script the form works by mouse. */
(() => {
  "use strict";
  const form = document.getElementById("rating");
  const told = document.getElementById("told");
  const paused = document.getElementById("paused");
  const reference = document.getElementById("reference");
  const pause = document.getElementById("pause");
  const comment = document.getElementById("comment");
  const aspects = Array.from(form.querySelectorAll(".aspect"));
  const wasRated = "rated" in form.dataset;
  let sending = false;

  // the time with the page on screen, without pauses
  let counted = 0;
  let since = performance.now();
  const counts = () => !document.hidden && !paused.open;
  const settle = () => {
    if (since !== null) counted += performance.now() - since;
    since = counts() ? performance.now() : null;
  };
  document.addEventListener("visibilitychange", settle);
  paused.addEventListener("close", () => {
    settle();
    focusOn(current);
  });
  const rest = () => {
    paused.showModal();
    settle();
  };
  pause.hidden = false;
  pause.addEventListener("click", rest);

  // the aspect that digits are for
  let current = 0;
  const value = (aspect) => aspect.querySelector("input:checked, input[type=number]")?.value ?? "";
  const firstOpen = () => aspects.findIndex((aspect) => value(aspect) === "");
  const mark = (number) => {
    current = number;
    aspects.forEach((aspect, index) => aspect.classList.toggle("now", index === number));
  };
  const focusOn = (number) => {
    mark(number);
    const input = aspects[number].querySelector("input:checked") ?? aspects[number].querySelector("input");
    input.focus({ preventScroll: true });
    const box = aspects[number].getBoundingClientRect();
    // on a phone the form is below the answer: the page stays where the rater reads until a choice
    if (started && (box.top < 0 || box.bottom > innerHeight)) aspects[number].scrollIntoView({ block: "nearest" });
  };
  let started = false;
  aspects.forEach((aspect, number) => aspect.addEventListener("focusin", () => mark(number)));

  const goOn = () => {
    started = true;
    const open = firstOpen();
    if (open < 0 && !wasRated) send("save");
    else if (open >= 0) focusOn(open);
    else focusOn(current);
  };
  const choose = (label) => {
    label.querySelector("input").checked = true;
    goOn();
  };
  for (const label of form.querySelectorAll(".choice")) {
    // a pointer decides; arrow keys only move between the buttons, as everywhere
    label.querySelector("input").addEventListener("click", (event) => {
      if (event.detail > 0) goOn();
    });
  }

  const send = async (action) => {
    if (sending) return;
    if (action === "save" && firstOpen() >= 0) {
      told.textContent = "Not saved: choose a score for every aspect, or press x if you cannot tell.";
      focusOn(firstOpen());
      return;
    }
    sending = true;
    settle();
    const fields = new URLSearchParams(new FormData(form));
    fields.set("do", action);
    fields.set("seconds", (counted / 1000).toFixed(1));
    try {
      const answer = await fetch(form.action, { method: "POST", body: fields, redirect: "manual" });
      if (answer.type === "opaqueredirect") {
        location.assign(form.dataset.next);
        return;
      }
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      told.textContent = page.getElementById("reason")?.textContent ?? "Not saved: the server refused it.";
    } catch {
      told.textContent = "Not saved: the server does not answer. Run the same command again; ratings so far are in the file.";
    }
    sending = false;
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(event.submitter?.value ?? "save");
  });

  const step = (by) => {
    const number = current + by;
    started = true;
    if (number >= 0 && number < aspects.length) focusOn(number);
  };
  const commands = {
    x: () => send("cannot_tell"),
    c: () => comment.focus(),
    p: rest,
    r: () => { reference.open = !reference.open; },
    ArrowUp: () => step(-1),
    ArrowDown: () => step(1),
    Enter: () => {
      const answered = document.activeElement.closest(".number input")?.value;
      if (answered && firstOpen() >= 0) goOn(); // a number's Enter leads to the next aspect
      else send("save");
    },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || sending) return;
    if (paused.open) {
      if (event.key === "p") {
        event.preventDefault();
        paused.close();
      }
      return;
    }
    if (document.querySelector("dialog[open]")) return; // enlarged pictures have keys of their own
    if (event.target === comment) {
      if (event.key === "Escape") focusOn(current);
      return;
    }
    const types = event.target.closest("input[type=number]");
    if (types && (event.key.length === 1 || event.key.startsWith("Arrow")) && !/[a-z]/.test(event.key)) return;
    if (event.key === "Enter" && event.target.closest("button, a, summary")) return; // what has focus answers
    const onPictures = event.target.closest(".strip, pre, select");
    if (event.key.startsWith("Arrow") && onPictures) return; // it scrolls
    const label = /^\d$/.test(event.key) && aspects[current].querySelector(`.choice[data-key="${event.key}"]`);
    const link = Array.from(document.querySelectorAll("a[data-key]")).find((each) => each.dataset.key.split(" ").includes(event.key));
    const command = commands[event.key];
    if (!label && !link && !command) return;
    event.preventDefault();
    if (label) choose(label);
    else if (link) link.click();
    else command();
  });

  focusOn(Math.max(firstOpen(), 0));
})();
