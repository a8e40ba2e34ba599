/* What mouse, pen, fingers and wheel do on a stage. */

const TREMBLE = 4; // pixels that a click may move
const WHEEL = Math.log(1.25) / 100; // a notch of the wheel, 100 pixels or 3 lines, zooms by a quarter
const PINCH = 0.01; // touchpads report two fingers as a wheel with Ctrl

const distance = (first, second) => Math.hypot(first.clientX - second.clientX, first.clientY - second.clientY);

const middle = (first, second) => ({
  clientX: (first.clientX + second.clientX) / 2,
  clientY: (first.clientY + second.clientY) / 2,
});

/* Call the functions of `on`: `start()`, `drag(across, down, event)`, `zoom(factor, place)` and `click(event)`. */
export function followGestures(stage, on) {
  const held = new Map(); // the last event of each pointer that is down
  let moves = false;

  stage.addEventListener("pointerdown", (event) => {
    if (!held.size) moves = false;
    held.set(event.pointerId, event);
    stage.setPointerCapture(event.pointerId);
    on.start();
  });

  stage.addEventListener("pointermove", (event) => {
    const before = held.get(event.pointerId);
    if (!before || (!moves && distance(before, event) < TREMBLE)) return;
    moves = true;
    held.set(event.pointerId, event);
    const [across, down] = [event.clientX - before.clientX, event.clientY - before.clientY];
    const other = Array.from(held.values()).find(({ pointerId }) => pointerId !== event.pointerId);
    if (!other) {
      on.drag(across, down, event);
      return;
    }
    on.drag(across / 2, down / 2, event);
    on.zoom(distance(event, other) / Math.max(distance(before, other), 1), middle(event, other));
  });

  for (const end of ["pointerup", "pointercancel"]) {
    stage.addEventListener(end, (event) => held.delete(event.pointerId));
  }

  stage.addEventListener("click", (event) => {
    if (!moves) on.click(event);
  });

  stage.addEventListener("contextmenu", (event) => event.preventDefault()); // the right button drags

  stage.addEventListener("wheel", (event) => {
    event.preventDefault();
    const pixels = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? event.deltaY : (event.deltaY * 100) / 3;
    on.zoom(Math.exp(-pixels * (event.ctrlKey ? PINCH : WHEEL)), event);
  }, { passive: false });
}
