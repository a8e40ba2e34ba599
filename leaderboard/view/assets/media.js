/* The pictures and frames of a sample, enlarged. */
(() => {
  "use strict";
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
})();
