/* What the scripts of several pages use. All text is set as text. */
"use strict";
const make = (name, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};

// the value of a script below data/, which is loaded once
const loading = new Map();
const load = (key) => {
  if (!loading.has(key)) {
    loading.set(key, new Promise((resolve, reject) => {
      const script = make("script", { src: `data/${key.split("/").map(encodeURIComponent).join("/")}.js` });
      script.addEventListener("load", () => resolve(window.medtasks[key]));
      script.addEventListener("error", () => reject(new Error(`data/${key}.js cannot be loaded`)));
      document.head.append(script);
    }));
  }
  return loading.get(key);
};

// a table in a region that scrolls, as in the templates
const region = (caption, kind, head, body) => {
  const table = make("table", { className: kind }, make("caption", { className: "vh", textContent: caption }),
    make("thead", {}, head), make("tbody", {}, ...body));
  const made = make("div", { className: "scroll", tabIndex: 0 }, table);
  made.setAttribute("role", "region");
  made.setAttribute("aria-label", caption);
  return made;
};
