/* Sorting, filters, columns and the view in the address. Without this script all tables are there, but cannot be sorted. */
(() => {
  "use strict";
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  // the theme: the system's, unless the reader chose another here
  const root = document.documentElement;
  const stored = (value) => {
    try {
      if (value) localStorage.setItem("medtasks-theme", value);
      return localStorage.getItem("medtasks-theme");
    } catch {
      return value ?? null; // storage is forbidden: the choice holds for this page
    }
  };
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const showTheme = (theme) => {
    if (theme === "dark" || theme === "light") root.dataset.theme = theme;
    const dark = (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
    button.setAttribute("aria-pressed", String(dark));
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    showTheme(stored(button.getAttribute("aria-pressed") === "true" ? "light" : "dark"));
  });
  system.addEventListener("change", () => showTheme(null));
  showTheme(stored());
  const here = document.querySelector(".mast [aria-current]");
  if (here) here.closest("nav").scrollLeft = here.offsetLeft - here.closest("nav").offsetLeft - 40; // keeps the focus

  // tables
  const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  const tables = new Map(all("table.data").map((element) => [element.id, prepare(element)]));

  function prepare(element) {
    const body = element.tBodies[0];
    const heads = Array.from(element.tHead.rows[0].cells);
    const table = { element, body, heads, sort: null, hidden: new Set(), groups: [] };
    for (const row of body.rows) {
      if (row.classList.contains("with")) table.groups.at(-1).push(row);
      else if (!row.classList.contains("fixed")) table.groups.push([row]);
    }
    heads.forEach((head, index) => {
      const label = make("button", { type: "button" });
      label.append(...head.childNodes);
      head.append(label);
      label.addEventListener("click", () => {
        const same = table.sort?.key === head.dataset.k;
        const up = same ? !table.sort.up : head.dataset.d === "up";
        table.sort = { key: head.dataset.k, up };
        sort(table);
        store();
      });
      head.dataset.i = index;
    });
    if (heads.length > 2) chooser(table);
    return table;
  }

  function key(row, index) {
    const cell = row.cells[index];
    if (cell.dataset.v !== undefined) return cell.dataset.v === "" ? null : Number(cell.dataset.v);
    if (cell.classList.contains("no")) return null;
    const text = (cell.tagName === "TH" ? cell.querySelector("a") ?? cell : cell).textContent.trim();
    return text === "" ? null : text;
  }

  function compare(one, other) {
    if (typeof one === "number" && typeof other === "number") return one - other;
    return collator.compare(String(one), String(other));
  }

  function sort(table) {
    const head = table.heads.find((each) => each.dataset.k === table.sort?.key);
    for (const each of table.heads) each.removeAttribute("aria-sort");
    let order = table.groups;
    if (head) {
      const { up } = table.sort;
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const keyed = table.groups.map((group, place) => [key(group[0], Number(head.dataset.i)), place, group]);
      keyed.sort(([one, here], [other, there]) => {
        if (one === null || other === null) return (one === null) - (other === null) || here - there;
        return (up ? compare(one, other) : compare(other, one)) || here - there;
      });
      order = keyed.map(([, , group]) => group);
    }
    table.body.append(...order.flat());
  }

  function hide(table) {
    const indexes = table.heads.flatMap((head, index) => (table.hidden.has(head.dataset.k) ? [index] : []));
    const hidden = new Set(indexes);
    for (const row of table.element.rows) {
      Array.from(row.cells).forEach((cell, index) => {
        if (cell.hidden !== hidden.has(index)) cell.hidden = hidden.has(index);
      });
    }
    for (const box of table.boxes) box.checked = !table.hidden.has(box.value);
  }

  function chooser(table) {
    const field = make("fieldset", {}, make("legend", { textContent: "Columns" }));
    const set = (keys) => {
      table.hidden = new Set(keys);
      hide(table);
      store();
    };
    const choosable = table.heads.slice(1);
    const allKeys = choosable.map((head) => head.dataset.k);
    const everything = make("button", { type: "button", textContent: "All" });
    const nothing = make("button", { type: "button", textContent: "None" });
    everything.addEventListener("click", () => set([]));
    nothing.addEventListener("click", () => set(allKeys));
    field.append(make("div", { className: "all" }, everything, nothing));
    table.boxes = choosable.map((head) => {
      const box = make("input", { type: "checkbox", value: head.dataset.k, checked: true });
      const text = head.textContent.replace(/\s+/g, " ").trim();
      field.append(make("label", {}, box, make("span", { textContent: text })));
      box.addEventListener("change", () => set(table.boxes.filter((each) => !each.checked).map((each) => each.value)));
      return box;
    });
    const title = table.element.caption.textContent.trim();
    const summary = make("summary", { textContent: "Columns" }, make("span", { className: "vh", textContent: ` of ${title}` }));
    const menu = make("details", { className: "menu" }, summary, field);
    const region = table.element.parentElement;
    if (region.previousElementSibling?.id === "filters") region.previousElementSibling.append(menu);
    else region.before(menu);
    menu.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && menu.open) {
        menu.open = false;
        summary.focus();
      }
    });
    document.addEventListener("click", (event) => {
      if (menu.open && !menu.contains(event.target)) menu.open = false;
    });
  }

  // filters
  const form = document.getElementById("filters");
  const count = document.getElementById("count");
  const facts = { family: "f", size: "s", type: "t", trained: "r" };

  function filter() {
    const wanted = Object.entries(facts).flatMap(([name, fact]) => (form.elements[name].value ? [[fact, form.elements[name].value]] : []));
    const words = form.elements.q.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    const matches = (row) => {
      if (!wanted.every(([fact, value]) => row.dataset[fact] === value)) return false;
      if (words.length === 0) return true;
      const text = `${row.cells[0].textContent} ${row.dataset.f} ${row.dataset.t}`.toLocaleLowerCase();
      return words.every((word) => text.includes(word));
    };
    let shown = 0;
    let first = true;
    for (const { groups } of tables.values()) {
      for (const group of groups) {
        const visible = group[0].dataset.f === undefined || matches(group[0]);
        for (const row of group) if (row.hidden === visible) row.hidden = !visible;
        if (first && visible) shown += 1;
      }
      if (first) count.textContent = `${shown} of ${groups.length} models`;
      first = false;
    }
    const published = form.elements.published;
    for (const section of all("[data-published]")) section.hidden = published !== undefined && !published.checked;
  }

  // the view in the address: #q=…&family=…&sort=table:column:up&hide=table:column&published=0
  const fields = ["q", ...Object.keys(facts)];

  function store() {
    if (restoring) return;
    const state = new URLSearchParams();
    for (const name of fields) if (form?.elements[name].value) state.append(name, form.elements[name].value);
    if (form?.elements.published && !form.elements.published.checked) state.append("published", "0");
    for (const [id, table] of tables) {
      if (table.sort) state.append("sort", `${id}:${table.sort.key}:${table.sort.up ? "up" : "down"}`);
      for (const hidden of table.hidden) state.append("hide", `${id}:${hidden}`);
    }
    const text = state.toString();
    history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  }

  let restoring = false;
  function restore() {
    const hash = location.hash.slice(1);
    if (hash && !hash.includes("=")) return open(hash); // a place on the page, not a view
    const state = new URLSearchParams(hash);
    restoring = true;
    if (form) {
      for (const name of fields) {
        const field = form.elements[name];
        field.value = state.get(name) ?? "";
        if (field.selectedIndex === -1) field.value = "";
      }
      if (form.elements.published) form.elements.published.checked = state.get("published") !== "0";
    }
    const split = (text) => [text.slice(0, text.indexOf(":")), text.slice(text.indexOf(":") + 1)];
    for (const table of tables.values()) {
      table.wasSorted = table.sort !== null;
      table.sort = null;
      table.wasHidden = table.hidden.size > 0;
      table.hidden = new Set();
    }
    for (const [id, rest] of state.getAll("sort").map(split)) {
      const end = rest.lastIndexOf(":");
      if (tables.has(id)) tables.get(id).sort = { key: rest.slice(0, end), up: rest.slice(end + 1) === "up" };
    }
    for (const [id, rest] of state.getAll("hide").map(split)) tables.get(id)?.hidden.add(rest);
    for (const table of tables.values()) {
      if (table.sort || table.wasSorted) sort(table);
      if (table.hidden.size || table.wasHidden) hide(table);
    }
    if (form) filter();
    restoring = false;
    return undefined;
  }

  function open(id) {
    const target = document.getElementById(decodeURIComponent(id));
    for (let each = target; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
    target?.scrollIntoView();
  }

  if (form) {
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", () => {
      filter();
      store();
    });
    form.addEventListener("reset", (event) => {
      event.preventDefault();
      history.replaceState(null, "", location.pathname + location.search);
      restore();
    });
    filter();
  }
  if (!document.getElementById("choose")) {
    restore();
    addEventListener("hashchange", restore);
  }
})();
