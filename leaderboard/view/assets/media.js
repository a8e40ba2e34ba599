/* The viewer of a sample's pictures and frames, whose elements are in media.html.j2. */
import { COMMANDS, FIELDS, commandOf } from "./commands.js";
import { followGestures } from "./gestures.js";
import { Picture } from "./picture.js";

const LEVELS_PER_PIXEL = 0.5; // of dragging
const WRITABLE = "select, textarea, input:not([type=radio], [type=checkbox], [type=number])"; // letters are for them

/* The number of columns in which so many pictures like `image` are largest. */
function columnsOf(count, { clientWidth, clientHeight }, { naturalWidth, naturalHeight }) {
  let [best, largest] = [1, 0];
  for (let columns = 1; columns <= count; columns += 1) {
    const heightAcross = (clientWidth / columns) * (naturalHeight / naturalWidth || 1);
    const height = Math.min(heightAcross, clientHeight / Math.ceil(count / columns));
    if (height > largest) [best, largest] = [columns, height];
  }
  return best;
}

class MediaZone extends HTMLElement {
  connectedCallback() {
    this.dialog = this.querySelector("dialog");
    if (!this.dialog || this.pictures) return;
    this.links = Array.from(this.querySelectorAll("a[data-zoom]"));
    this.pictures = this.links.map((link) => new Picture(link, this.find("template")));
    this.box = this.find(".panes");
    this.box.prepend(...this.pictures.map((picture) => picture.element));
    Object.assign(this, { layout: "one", active: 0, sides: [0, 1] });
    Object.assign(this, { isTogether: true, dragsWindow: false, showsHelp: false });
    this.links.forEach((link, number) => link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a tab of its own
      event.preventDefault();
      this.open(number);
    }));
    document.addEventListener("keydown", (event) => this.openByKey(event));
    this.dialog.addEventListener("keydown", (event) => this.press(event));
    for (const button of this.dialog.querySelectorAll("button")) {
      button.addEventListener("click", () => COMMANDS[button.dataset.do](this, button.value));
    }
    this.dialog.addEventListener("input", ({ target }) => FIELDS[target.name](this, target.value));
    this.pictures.forEach((picture, number) => followGestures(picture.stage, {
      start: () => number === this.active || this.select(number),
      drag: (across, down, event) => this.drag(across, down, event),
      zoom: (factor, place) => this.zoom(factor, ...picture.fromMiddle(place)),
      click: (place) => this.toggleActualSize(...picture.fromMiddle(place)),
    }));
    new ResizeObserver(() => this.dialog.open && this.arrange()).observe(this.box);
  }

  find(selector) {
    return this.dialog.querySelector(selector);
  }

  get current() {
    return this.pictures[this.active];
  }

  get hasSides() {
    return this.layout === "pair" || this.layout === "swipe";
  }

  /* the numbers of the pictures on the screen */
  get shown() {
    if (this.hasSides) return this.sides;
    return this.layout === "all" ? [...this.pictures.keys()] : [this.active];
  }

  open(number) {
    this.dialog.showModal();
    this.current.stage.focus();
    this.select(number);
  }

  openByKey(event) {
    const isBusy = document.querySelector("dialog[open]") || event.target.closest(WRITABLE);
    if (event.key !== "z" || isBusy || event.ctrlKey || event.metaKey || event.altKey || !this.isConnected) return;
    event.preventDefault();
    this.open(this.active);
  }

  press(event) {
    const command = commandOf(event);
    if (!command) return; // the page may have a use for the key
    event.preventDefault();
    event.stopPropagation();
    COMMANDS[command](this);
  }

  frameNear(time) {
    const distances = this.links.map((link) => Math.abs(Number(link.dataset.time) - time));
    return distances.indexOf(Math.min(...distances));
  }

  /* Show a picture on one of two sides; if the other side has it, the sides change places. */
  takeSide(side, number) {
    if (this.sides[1 - side] === number) this.sides.reverse();
    this.sides[side] = number;
    this.select(number);
  }

  /* Show a picture; keys and tools change this one, or all together. */
  async select(number) {
    this.active = number;
    if (!this.sides.includes(number)) this.sides = number ? [number - 1, number] : [0, 1];
    await Promise.all(this.shown.map((each) => this.pictures[each].load()));
    if (number !== this.active) return; // another was chosen meanwhile
    const movesFocus = document.activeElement.matches(".stage, dialog, body");
    this.arrange();
    if (movesFocus) this.current.stage.focus();
    for (const neighbour of [number + 1, number - 1]) this.pictures[neighbour]?.load();
  }

  /* Show another picture instead of the active one. */
  choose(number) {
    if (this.hasSides) this.takeSide(this.sides.indexOf(this.active), number);
    else this.select(number);
  }

  step(by) {
    const beside = (number) => (number + by + this.pictures.length) % this.pictures.length;
    const number = beside(this.active);
    const isOnOtherSide = this.hasSides && this.sides.includes(number);
    this.choose(isOnOtherSide ? beside(number) : number);
  }

  layOut(layout) {
    this.layout = layout;
    this.select(this.active);
  }

  set(states) {
    Object.assign(this, states);
    this.arrange();
  }

  change(edit) {
    (this.isTogether ? this.pictures : [this.current]).forEach(edit);
    this.draw();
  }

  /* Zoom so that the point at a distance from the middle of the stage stays where it is. */
  zoom(wanted, across = 0, down = 0) {
    const factor = this.current.allowed(wanted);
    const [x, y] = this.current.shares(across * (1 - 1 / factor), down * (1 - 1 / factor));
    this.change((picture) => {
      picture.zoom *= factor;
      picture.move(x, y);
    });
  }

  toggleActualSize(across, down) {
    const { zoom, actualSize } = this.current;
    if (zoom === 1) this.zoom(actualSize, across, down);
    else this.change((picture) => picture.fit());
  }

  drag(across, down, event) {
    const hasOtherTool = event.shiftKey || event.buttons === 2;
    if (this.dragsWindow === hasOtherTool) this.move(across, down);
    else this.changeWindow(across * LEVELS_PER_PIXEL, down * LEVELS_PER_PIXEL);
  }

  move(across, down) {
    const [x, y] = this.current.shares(-across, -down);
    this.change((picture) => picture.move(x, y));
  }

  setWindow(values) {
    this.change((picture) => Object.assign(picture, { preset: "", ...values }));
  }

  changeWindow(width, level) {
    this.change((picture) => picture.changeWindow(width, level));
  }

  arrange() {
    const { shown, box } = this;
    this.dialog.dataset.layout = this.layout;
    this.find(".help").hidden = !this.showsHelp;
    this.pictures.forEach(({ element }, number) => {
      element.hidden = !shown.includes(number);
      element.style.order = shown.indexOf(number);
      element.classList.toggle("active", number === this.active);
      element.classList.toggle("over", number === this.sides[1]);
    });
    box.style.setProperty("--columns", columnsOf(shown.length, box, this.current.image));
    this.showStates();
    this.draw();
  }

  showStates() {
    const values = { left: this.sides[0], right: this.sides[1], time: this.links[this.active].dataset.time };
    for (const [name, value] of Object.entries(values)) {
      const field = this.find(`[name=${name}]`);
      if (field) field.value = value;
    }
    this.find("[name=time]")?.setAttribute("aria-valuetext", this.current.name);
    this.find("[data-do=dragWindow]").textContent = this.dragsWindow ? "Drag: window" : "Drag: move";
    const states = { together: this.isTogether, help: this.showsHelp };
    for (const [command, isOn] of Object.entries(states)) {
      this.find(`[data-do=${command}]`)?.setAttribute("aria-pressed", isOn);
    }
    for (const button of this.dialog.querySelectorAll("[data-do=layOut]")) {
      button.setAttribute("aria-pressed", button.value === this.layout);
    }
  }

  draw() {
    for (const number of this.shown) this.pictures[number].draw();
    const { name, zoom, actualSize, level, width, preset, inverted } = this.current;
    this.find("[name=level]").value = level;
    this.find("[name=width]").value = width;
    this.find("[name=preset]").value = preset;
    this.find("[data-do=invert]").setAttribute("aria-pressed", inverted);
    const percent = Math.round((100 * zoom) / actualSize);
    this.find(".state").textContent = `${percent} %, level ${Math.round(level)}, width ${Math.round(width)}. ${name}`;
  }
}

customElements.define("media-zone", MediaZone);
