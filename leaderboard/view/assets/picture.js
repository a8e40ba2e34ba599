/* A picture that is zoomed and moved by a CSS transform, and windowed by an SVG filter on its visible part. Software
   rendering draws both without a graphics card; performance/viewer_steps.py measures how long a step takes. */

export const FULL_RANGE = { level: 127.5, width: 255, preset: "full" };
const LARGEST_PIXEL = 32; // on the screen
let filters = 0;

const within = (low, value, high) => Math.min(Math.max(value, low), high);

/* A picture in its stage. The point `x`, `y` (0 to 1) of the picture is in the middle of the stage; `zoom` is 1 if the
   picture just fits. The `width` grey levels (of 0 to 255) around `level` are drawn from black to white. */
export class Picture {
  constructor(link, template) {
    this.link = link;
    this.name = link.querySelector("img").alt;
    this.element = template.content.firstElementChild.cloneNode(true);
    this.element.querySelector("figcaption").textContent = link.parentElement.textContent.trim();
    this.stage = this.element.querySelector(".stage");
    this.stage.setAttribute("aria-label", this.name);
    this.filter = this.element.querySelector("filter");
    this.filter.id = `window-${(filters += 1)}`;
    this.image = Object.assign(new Image(), { alt: "", decoding: "sync", draggable: false });
    this.stage.append(this.image);
    this.reset();
  }

  async load() {
    if (!this.image.src) this.image.src = this.link.href;
    try {
      await this.image.decode();
    } catch {
      this.name = `${this.link.querySelector("img").alt} cannot be loaded`;
    }
  }

  reset() {
    this.fit();
    Object.assign(this, FULL_RANGE, { inverted: false });
  }

  fit() {
    Object.assign(this, { x: 0.5, y: 0.5, zoom: 1 });
  }

  /* CSS pixels for each pixel of the picture */
  get scale() {
    const across = this.stage.clientWidth / this.image.naturalWidth;
    const down = this.stage.clientHeight / this.image.naturalHeight;
    const scale = this.zoom * Math.min(across, down);
    return Number.isFinite(scale) && scale > 0 ? scale : 1; // without a picture or a stage
  }

  /* the zoom that shows each pixel of the picture on one of the screen */
  get actualSize() {
    return this.zoom / this.scale / devicePixelRatio;
  }

  /* the factor by which the zoom can change if it is to change by `factor` */
  allowed(factor) {
    const least = Math.min(1, this.actualSize);
    const most = Math.max(1, this.actualSize * LARGEST_PIXEL);
    return within(least, this.zoom * factor, most) / this.zoom;
  }

  /* a distance on the screen, in shares of the picture's sides */
  shares(across, down) {
    return [across / this.image.naturalWidth / this.scale, down / this.image.naturalHeight / this.scale];
  }

  /* the place of a pointer, from the middle of the stage */
  fromMiddle({ clientX, clientY }) {
    const { left, top, width, height } = this.stage.getBoundingClientRect();
    return [clientX - left - width / 2, clientY - top - height / 2];
  }

  move(x, y) {
    this.x = within(0, this.x + x, 1);
    this.y = within(0, this.y + y, 1);
  }

  changeWindow(width, level) {
    this.width = within(1, this.width + width, 510);
    this.level = within(0, this.level + level, 255);
    this.preset = "";
  }

  draw() {
    const { stage, image, scale } = this;
    const left = stage.clientWidth / 2 - this.x * image.naturalWidth * scale;
    const top = stage.clientHeight / 2 - this.y * image.naturalHeight * scale;
    image.style.transform = `translate(${left}px, ${top}px) scale(${scale})`;
    const slope = (this.inverted ? -255 : 255) / this.width;
    const intercept = 0.5 - (slope * this.level) / 255;
    for (const channel of this.filter.firstElementChild.children) {
      channel.setAttribute("slope", slope);
      channel.setAttribute("intercept", intercept);
    }
    stage.style.filter = slope === 1 && intercept === 0 ? "" : `url(#${this.filter.id})`;
  }

  /* the window from the 1st to the 99th percentile of the grey levels */
  percentiles() {
    const canvas = Object.assign(document.createElement("canvas"), { width: 256, height: 256 });
    const context = canvas.getContext("2d");
    context.drawImage(this.image, 0, 0, 256, 256);
    const { data } = context.getImageData(0, 0, 256, 256);
    const greys = new Float32Array(256 * 256);
    for (let n = 0; n < greys.length; n += 1) greys[n] = (data[4 * n] + data[4 * n + 1] + data[4 * n + 2]) / 3;
    greys.sort();
    const [low, high] = [0.01, 0.99].map((share) => greys[Math.floor(share * greys.length)]);
    return { level: (low + high) / 2, width: Math.max(high - low, 1), preset: "automatic" };
  }
}
