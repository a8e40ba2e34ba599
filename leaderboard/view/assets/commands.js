/* What the viewer's buttons and keys do. No key is one of the page's: n p w r b u, digits, Enter, Backspace. */
import { FULL_RANGE } from "./picture.js";

const ZOOM = 1.25;
const PIXELS = 60; // that a key moves a picture
const LEVELS = 8; // that a key changes the window by, of 0 to 255
const LAYOUTS = ["one", "pair", "swipe", "all"];
const PRESETS = {
  full: FULL_RANGE,
  dark: { level: 64, width: 128, preset: "dark" },
  bright: { level: 191, width: 128, preset: "bright" },
};

/* Functions of the viewer and of the button's value. */
export const COMMANDS = {
  previous: (viewer) => viewer.step(-1),
  next: (viewer) => viewer.step(1),
  first: (viewer) => viewer.choose(0),
  last: (viewer) => viewer.choose(viewer.pictures.length - 1),
  layOut: (viewer, layout) => viewer.layOut(layout),
  nextLayout: (viewer) => viewer.layOut(LAYOUTS[(LAYOUTS.indexOf(viewer.layout) + 1) % LAYOUTS.length]),

  zoomIn: (viewer) => viewer.zoom(ZOOM),
  zoomOut: (viewer) => viewer.zoom(1 / ZOOM),
  fit: (viewer) => viewer.change((picture) => picture.fit()),
  actualSize: (viewer) => viewer.zoom(viewer.current.actualSize / viewer.current.zoom),
  moveLeft: (viewer) => viewer.move(-PIXELS, 0),
  moveRight: (viewer) => viewer.move(PIXELS, 0),
  moveUp: (viewer) => viewer.move(0, -PIXELS),
  moveDown: (viewer) => viewer.move(0, PIXELS),

  lighter: (viewer) => viewer.changeWindow(0, -LEVELS),
  darker: (viewer) => viewer.changeWindow(0, LEVELS),
  harder: (viewer) => viewer.changeWindow(-2 * LEVELS, 0),
  softer: (viewer) => viewer.changeWindow(2 * LEVELS, 0),
  preset: (viewer, name) => viewer.setWindow(PRESETS[name]),
  automatic: (viewer) => viewer.setWindow(viewer.current.percentiles()),
  invert: (viewer) => {
    const inverted = !viewer.current.inverted;
    viewer.change((picture) => Object.assign(picture, { inverted }));
  },

  dragWindow: (viewer) => viewer.set({ dragsWindow: !viewer.dragsWindow }),
  together: (viewer) => viewer.set({ isTogether: !viewer.isTogether }),
  reset: (viewer) => viewer.change((picture) => picture.reset()),
  help: (viewer) => viewer.set({ showsHelp: !viewer.showsHelp }),
  close: (viewer) => viewer.dialog.close(),
};

/* Functions of the viewer and of the value of a field that was changed, by the field's name. */
export const FIELDS = {
  level: (viewer, level) => viewer.setWindow({ level: Number(level) }),
  width: (viewer, width) => viewer.setWindow({ width: Number(width) }),
  preset: (viewer, name) => COMMANDS[name === "automatic" ? name : "preset"](viewer, name),
  divider: (viewer, percent) => viewer.box.style.setProperty("--divider", percent / 100),
  left: (viewer, number) => viewer.takeSide(0, Number(number)),
  right: (viewer, number) => viewer.takeSide(1, Number(number)),
  time: (viewer, time) => viewer.select(viewer.frameNear(time)),
};

const COMMAND_OF_KEY = {
  ArrowLeft: "previous", ArrowRight: "next", Home: "first", End: "last", m: "nextLayout",
  "+": "zoomIn", "=": "zoomIn", "-": "zoomOut", f: "fit", o: "actualSize",
  "Shift+ArrowLeft": "moveLeft", "Shift+ArrowRight": "moveRight", "Shift+ArrowUp": "moveUp", "Shift+ArrowDown": "moveDown",
  l: "lighter", d: "darker", c: "harder", s: "softer", a: "automatic", i: "invert",
  t: "dragWindow", y: "together", x: "reset", "?": "help", z: "close",
};

/* The command of a key, unless the key belongs to the field that has the focus. */
export function commandOf(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  const isArrow = event.key.startsWith("Arrow");
  const movesSlider = isArrow || event.key === "Home" || event.key === "End";
  if (event.target.closest(movesSlider ? "select, input:not([name=time])" : "select")) return undefined;
  return COMMAND_OF_KEY[event.shiftKey && isArrow ? `Shift+${event.key}` : event.key];
}
