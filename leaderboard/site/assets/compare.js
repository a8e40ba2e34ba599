/* The comparison page: scores, tests and samples of two models. */
(() => {
  "use strict";
  const index = window.medtasks.index;
  const models = new Map(Object.entries(index.models));
  const best = new Map(index.benchmarks.flatMap((one) => one.tables.flatMap((each) => each.columns.map((column) => [column.metric, column.best]))));
  const form = document.getElementById("choose");
  const status = document.getElementById("count");
  const place = document.getElementById("comparison");
  const differ = document.getElementById("differ");
  const samples = document.getElementById("samples");

  function table(caption, heads, rows) {
    const head = make("tr", {}, ...heads.map(([text, kind]) => make("th", { scope: "col", textContent: text, className: kind ?? "" })));
    const body = rows.map((cells) => make("tr", {}, ...cells.map((cell, number) => {
      const [text, small, kind] = Array.isArray(cell) ? cell : [cell];
      const element = make(number ? "td" : "th", { className: kind ?? heads[number][1] ?? "" }, ...[text].flat());
      if (!number) element.scope = "row";
      if (small) element.append(" ", make("small", { textContent: small, className: small.length > 30 ? "note" : "" }));
      return element;
    })));
    return region(caption, "plain first", head, body);
  }

  // pairs are stored once, under the model that comes first in the ranking
  const turned = (text) => (text.startsWith("+") ? `−${text.slice(1)}` : text.startsWith("−") ? `+${text.slice(1)}` : text);
  function pair(key, a, b, first, second) {
    const found = (first.pairs[key] ?? []).find((each) => each[0] === b);
    if (found) return found;
    const other = (second.pairs[key] ?? []).find((each) => each[0] === a);
    if (!other) return null;
    const [, items, clusters, difference, low, high, p, holm, wins, losses, ...said] = other;
    return [a, items, clusters, turned(difference), turned(high), turned(low), p, holm, losses, wins, ...said];
  }

  const cellOf = (model, key) => {
    const cell = model.cells[key];
    return cell ? (cell[0] ? [cell[0], cell[1], "n"] : ["no value", cell[3], "n no"]) : ["not run", "", "n no"];
  };
  const heading = (column) => `${column.label}${column.sub ? `, ${column.sub}` : ""}`;

  // an interval around zero, as wide as the widest of its unit
  const numeric = (text) => Number(text.replace("−", "-"));
  function aroundZero(ends, widest) {
    const place = (text) => (50 + (48 * numeric(text)) / widest).toFixed(1);
    const [difference, low, high] = ends;
    const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const [name, value] of [["class", "iv"], ["viewBox", "0 0 100 8"], ["preserveAspectRatio", "none"], ["aria-hidden", "true"]]) drawing.setAttribute(name, value);
    const ways = [["ch", "M50 0V8"], ["", `${low && high ? `M${place(low)} 4H${place(high)}` : ""}M${place(difference)} 1V7`]];
    for (const [kind, way] of ways) {
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("d", way);
      if (kind) path.setAttribute("class", kind);
      drawing.append(path);
    }
    return drawing;
  }

  function show(a, b, first, second) {
    const names = [models.get(a), models.get(b)];
    const parts = [];
    const tested = [];
    const widest = new Map();
    for (const column of index.benchmarks.flatMap((benchmark) => benchmark.rankings)) {
      const ends = (pair(column.key, a, b, first, second) ?? []).slice(3, 6).filter(Boolean).map((end) => Math.abs(numeric(end)));
      widest.set(column.unit, Math.max(widest.get(column.unit) ?? 0, ...ends));
    }
    for (const benchmark of index.benchmarks) {
      for (const column of benchmark.rankings) {
        const found = pair(column.key, a, b, first, second);
        const start = [benchmark.title, `${heading(column)} (${column.words})`, cellOf(first, column.key), cellOf(second, column.key)];
        if (!found) {
          tested.push([...start, ["not compared", "", "n no"], "", "", "", "", ""]);
          continue;
        }
        const [, items, clusters, difference, low, high, p, holm, wins, losses, reason, warning] = found;
        const counts = wins === null ? "" : `${wins} : ${losses}`;
        tested.push([...start, [[difference, aroundZero([difference, low, high], widest.get(column.unit) || 1)], low && high ? `${low} to ${high}` : p && reason, "n"], p || ["", reason, "n no"], holm, counts, String(items), [String(clusters), warning]]);
      }
    }
    parts.push(make("h2", { textContent: "Tests" }), table("Tests of the headline scores",
      [["Benchmark"], ["Score"], [names[0], "n"], [names[1], "n"], ["Difference", "n"], ["p", "n"], ["p, Holm", "n"], ["Only one correct", "n"], ["Items", "n"], ["Clusters", "n"]], tested));
    parts.push(make("p", { className: "muted", textContent: `Differences are ${names[0]} minus ${names[1]}, on the items that both answered, with 95 % intervals, drawn around zero; those of fractions are in percentage points. p is the p value of the cluster sign-flip test. “Only one correct” counts items that only the first, and only the second, answered correctly. Holm's correction is over all pairs of the ranking.` }));
    for (const benchmark of index.benchmarks) {
      for (const [model, name] of [[first, names[0]], [second, names[1]]]) {
        const reasons = model.apart[benchmark.name];
        if (!reasons) continue;
        const more = reasons.length > 3 ? `; and ${reasons.length - 3} more` : "";
        parts.push(make("p", { className: "muted", textContent: `${benchmark.title}: a run of ${name} is not comparable: ${reasons.slice(0, 3).join("; ")}${more}.` }));
      }
    }
    for (const benchmark of index.benchmarks) {
      const tables = [];
      for (const each of benchmark.tables) {
        const columns = each.columns.filter((column) => first.cells[column.key] && second.cells[column.key]);
        if (columns.length === 0) continue;
        const rows = columns.map((column) => {
          const cells = [first.cells[column.key], second.cells[column.key]];
          const equal = first.signatures[cells[0][2]] === second.signatures[cells[1][2]];
          const [one, two] = [cellOf(first, column.key), cellOf(second, column.key)];
          const [here, there] = cells.map((cell) => (cell[0] ? Number(cell[0].replace("−", "-")) : NaN));
          const whole = cells.every((cell) => cell[4]);
          if (equal && whole && column.best !== "zero" && (here < there || here > there)) (here > there === (column.best === "high") ? one : two)[2] += " top";
          return [[heading(column), equal ? column.words : `${column.words}; signatures differ, not comparable`], one, two];
        });
        const made = table(`${benchmark.title}: ${each.title}`, [["Score"], [names[0], "n"], [names[1], "n"]], rows);
        made.classList.add("scores");
        const fold = make("details", { open: tables.length === 0 }, make("summary", { textContent: each.title }), made);
        tables.push(fold);
      }
      if (tables.length) parts.push(make("h2", { textContent: benchmark.title }), ...tables);
    }
    place.replaceChildren(...parts);
  }

  // samples
  let chosen = [];
  function offer(a, b) {
    const tasks = index.benchmarks.flatMap((benchmark) => benchmark.samples
      .filter((task) => task.models.includes(a) && task.models.includes(b))
      .map((task) => ({ benchmark, ...task })));
    differ.hidden = tasks.length === 0;
    const before = samples.elements.task.value;
    const options = [make("option", { value: "", textContent: "choose" }), ...tasks.map((task) => make("option", { value: task.place, textContent: `${task.benchmark.title}: ${task.task}` }))];
    samples.elements.task.replaceChildren(...options);
    samples.elements.task.value = tasks.some((task) => task.place === before) ? before : "";
    return tasks;
  }

  let tasks = [];
  let run = 0;
  async function differences() {
    const rows = document.getElementById("rows");
    const found = document.getElementById("found");
    const more = document.getElementById("more");
    const task = tasks.find((each) => each.place === samples.elements.task.value);
    rows.replaceChildren();
    more.hidden = true;
    found.textContent = "";
    document.getElementById("limits").textContent = task && task.benchmark.shows === "nothing" ? `Only ids, extracted options and scores are shown. ${task.benchmark.why}` : "";
    if (!task) return;
    const mine = ++run;
    found.textContent = "Loading …";
    let questions, first, second;
    try {
      [questions, first, second] = await Promise.all([load(`${task.place}/questions`), ...chosen.map((slug) => load(`${task.place}/by-${slug}`))]);
    } catch (error) {
      found.textContent = `${error.message}.`;
      return;
    }
    if (mine !== run) return;
    const metrics = first.metrics.filter((metric) => second.metrics.includes(metric));
    const by = samples.elements.by;
    const before = by.value;
    by.replaceChildren(...metrics.map((metric) => make("option", { value: metric, textContent: metric })), make("option", { value: "", textContent: "extracted answer" }));
    by.value = metrics.includes(before) || (before === "" && by.dataset.touched) ? before : metrics[0] ?? "";
    const asked = new Map(questions.map(([id, question, target]) => [id, { question, target }]));
    const others = new Map(second.rows.map((row) => [row[0], row]));
    const score = (side, row) => row[4][side.metrics.indexOf(by.value)] ?? null;
    const shared = first.rows.filter((row) => others.has(row[0]));
    const way = best.get(by.value);
    const worth = (value) => (way === "zero" ? -Math.abs(value) : way === "low" ? -value : value);
    const list = [];
    for (const row of shared) {
      const other = others.get(row[0]);
      const [one, two] = by.value ? [score(first, row), score(second, other)] : [null, null];
      const both = one !== null && two !== null;
      const gap = both ? worth(one) - worth(two) : 0;
      if (by.value ? both && one !== two : row[2] !== other[2] || row[3] !== other[3]) list.push({ row, other, one, two, gap });
    }
    const show = by.value ? samples.elements.show.value : "all";
    const kept = list.filter(({ gap }) => show === "all" || (show === "first" ? gap > 0 : gap < 0));
    kept.sort((one, other) => Math.abs(other.one - other.two) - Math.abs(one.one - one.two));
    found.textContent = `${kept.length} of ${shared.length} samples`;
    const names = chosen.map((slug) => models.get(slug));
    let shown = 0;
    const next = () => {
      rows.append(...kept.slice(shown, shown + 50).map((each) => sample(each, [first, second], names, asked.get(each.row[0]), by.value, task.task)));
      shown += 50;
      more.hidden = shown >= kept.length;
    };
    more.onclick = next;
    next();
  }

  const line = (label, text) => make("p", { className: "text" }, make("small", { textContent: `${label} ` }), text);
  function sample({ row, other, one, two, gap }, [first, second], names, asked, metric, task) {
    const href = `samples.html?${new URLSearchParams({ task, model: chosen[0], id: row[0] })}`;
    const made = make("article", { className: "sample" }, make("h3", {}, make("a", { href, textContent: row[0] })));
    if (asked?.question) made.append(line("Question", asked.question));
    if (asked?.target) made.append(line("Reference", asked.target));
    const two_ = make("div", { className: "two" });
    for (const [name, side, value, better, doubts] of [[names[0], row, one, gap > 0, first.doubts], [names[1], other, two, gap < 0, second.doubts]]) {
      const box = make("div", { className: better ? "better" : "" }, make("h4", { textContent: name }));
      if (value !== null) box.append(line(metric, `${value}${better ? ", better" : ""}`));
      if (side[2] !== null && side[2] !== side[1]) box.append(line("Extracted", side[2]));
      if (side[3] !== "ok") box.append(line("Extraction", side[3]));
      if (side[1] !== null) box.append(line("Response", side[1]));
      if (side[5] !== undefined) box.append(line("Not verified", doubts[side[5]]));
      two_.append(box);
    }
    made.append(two_);
    return made;
  }

  // the choice, and the address that holds it
  const fields = [[form, "a"], [form, "b"], [samples, "task"], [samples, "by"], [samples, "show"]];
  function store() {
    const state = new URLSearchParams();
    for (const [where, name] of fields) if (where.elements[name].value) state.append(name, where.elements[name].value);
    history.replaceState(null, "", `#${state}`);
  }

  async function choose() {
    const [a, b] = [form.elements.a.value, form.elements.b.value];
    chosen = [a, b];
    if (!a || !b || a === b) {
      place.replaceChildren();
      differ.hidden = true;
      status.textContent = a && a === b ? "Choose two different models." : "Choose two models.";
      return;
    }
    const mine = ++run;
    status.textContent = "Loading …";
    try {
      const [first, second] = await Promise.all([load(`model-${a}`), load(`model-${b}`)]);
      if (mine !== run) return;
      show(a, b, first, second);
      status.textContent = `${models.get(a)} and ${models.get(b)}`;
    } catch (error) {
      status.textContent = `${error.message}.`;
      return;
    }
    tasks = offer(a, b);
    await differences();
  }

  async function restore() {
    const state = new URLSearchParams(location.hash.slice(1));
    const fresh = !state.has("a") && !state.has("b"); // the two best models are compared until others are chosen
    for (const name of ["a", "b"]) form.elements[name].value = models.has(state.get(name)) ? state.get(name) : (fresh && form.elements[name].dataset.best) || "";
    samples.elements.show.value = ["first", "second"].includes(state.get("show")) ? state.get("show") : "all";
    await choose();
    if (tasks.some((task) => task.place === state.get("task"))) {
      samples.elements.task.value = state.get("task");
      await differences();
      if (Array.from(samples.elements.by.options).some((option) => option.value === state.get("by"))) {
        samples.elements.by.value = state.get("by");
        await differences();
      }
    }
  }

  form.hidden = false;
  for (const each of [form, samples]) each.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", async () => {
    await choose();
    store();
  });
  samples.addEventListener("change", async (event) => {
    if (event.target.name === "by") samples.elements.by.dataset.touched = "yes";
    await differences();
    store();
  });
  document.getElementById("swap").addEventListener("click", async () => {
    [form.elements.a.value, form.elements.b.value] = [form.elements.b.value, form.elements.a.value];
    await choose();
    store();
  });
  addEventListener("hashchange", restore);
  restore();
})();
