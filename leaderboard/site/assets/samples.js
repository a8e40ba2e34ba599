/* The samples of the ranked runs, from the data of the comparison page. */
(() => {
  "use strict";
  const PAGE = 50;
  const index = window.medtasks.index;
  const models = new Map(Object.entries(index.models));
  const tasks = new Map(index.benchmarks.flatMap((benchmark) => benchmark.samples.map((one) => [one.task, { ...one, benchmark }])));
  const find = (id) => document.getElementById(id);
  const form = find("choose");
  const field = (name) => form.elements[name];
  const options = (name, values, chosen) => {
    field(name).replaceChildren(...values.map(([value, text]) => make("option", { value, textContent: text })));
    field(name).value = values.some(([value]) => value === chosen) ? chosen : values[0]?.[0] ?? "";
  };

  // the result of a sample: the full score, at least half of it, or less
  const units = new Map(index.benchmarks.flatMap((one) => one.tables.flatMap((each) => each.columns.map((column) => [column.metric, column.unit]))));
  const full = (metric) => ({ fraction: 1, points: 100 })[units.get(metric)];
  const NAMES = { right: "right", partly: "partly right", wrong: "wrong", none: "no score" };
  function outcome(answers, row, metric) {
    const value = row[4][answers.metrics.indexOf(metric)] ?? null;
    if (value === null || full(metric) === undefined) return "none";
    return value >= full(metric) ? "right" : value >= full(metric) / 2 ? "partly" : "wrong";
  }
  const badge = (kind) => make("span", { className: `outcome ${kind}`, textContent: NAMES[kind] });

  let state = new URLSearchParams(location.search);
  let run = 0;
  let rows = [];
  let everyone = false;
  let shown = { asked: new Map(), answers: null, task: null };
  const address = (changes) => {
    const made = new URLSearchParams(state);
    for (const [name, value] of Object.entries(changes)) value ? made.set(name, value) : made.delete(name);
    return `?${made}`;
  };
  function go(changes) {
    state = new URLSearchParams(address(changes));
    history.pushState(null, "", `?${state}`);
    return show();
  }

  async function show() {
    const mine = ++run;
    const task = tasks.get(state.get("task")) ?? tasks.values().next().value;
    if (!task) {
      find("found").textContent = "This board has no samples.";
      return;
    }
    const model = task.models.includes(state.get("model")) ? state.get("model") : task.models[0];
    find("found").textContent = "Loading …";
    let questions, answers;
    try {
      [questions, answers] = await Promise.all([load(`${task.place}/questions`), load(`${task.place}/by-${model}`)]);
    } catch (error) {
      find("found").textContent = `${error.message}.`;
      return;
    }
    if (mine !== run) return;
    shown = { asked: new Map(questions.map(([id, ...texts]) => [id, texts])), answers, task, model };
    options("task", Array.from(tasks.values(), (one) => [one.task, `${one.benchmark.title}: ${one.task}`]), task.task);
    options("model", task.models.map((slug) => [slug, models.get(slug)]), model);
    const ranked = task.benchmark.rankings.map((column) => column.metric).filter((metric) => answers.metrics.includes(metric));
    options("metric", answers.metrics.map((metric) => [metric, metric]), state.get("metric") ?? ranked[0]);
    const statuses = Array.from(new Set(answers.rows.map((row) => row[3]))).sort();
    options("status", [["", "all"], ...statuses.map((status) => [status, answers.words[status]])], state.get("status"));
    field("outcome").value = state.get("outcome") in NAMES ? state.get("outcome") : "";
    if (document.activeElement !== field("words")) field("words").value = state.get("words") ?? "";
    form.hidden = false;
    find("limits").hidden = task.benchmark.shows !== "nothing";
    find("limits").textContent = `Only ids, extracted options and scores are shown. ${task.benchmark.why}`;
    const words = (state.get("words") ?? "").toLocaleLowerCase();
    const metric = field("metric").value;
    rows = answers.rows.filter((row) => {
      if (field("status").value && row[3] !== field("status").value) return false;
      if (field("outcome").value && outcome(answers, row, metric) !== field("outcome").value) return false;
      return !words || [row[0], row[1], ...(shown.asked.get(row[0]) ?? [])].some((text) => text?.toLocaleLowerCase().includes(words));
    });
    find("found").textContent = `${rows.length} of ${answers.rows.length} samples`;
    one(metric);
    list(metric);
  }

  function link(id, target) {
    const anchor = make("a", { href: address({ id }), textContent: target ?? id });
    anchor.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      go({ id });
    });
    return anchor;
  }

  function list(metric) {
    const whole = state.has("id");
    const page = Math.min(Math.max(Number(state.get("page")) || 1, 1), Math.max(1, Math.ceil(rows.length / PAGE)));
    const heads = ["Sample", "Result", metric || "Score", "Question", "Reference", "Extracted"];
    const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col", textContent: text })));
    const { answers } = shown;
    const body = rows.slice((page - 1) * PAGE, page * PAGE).map((row) => {
      const [question, target] = shown.asked.get(row[0]) ?? [];
      const value = row[4][answers.metrics.indexOf(metric)];
      const doubt = row[5] === undefined ? "" : make("small", { textContent: " not verified" });
      const texts = [value ?? "", question ?? "", target ?? "", row[2] ?? ""].map((text, place) => {
        const cell = make("td", { className: "text", textContent: text });
        cell.dataset.of = heads[place + 2]; // narrow windows show it in place of the heading
        return cell;
      });
      return make("tr", {}, make("th", { scope: "row" }, link(row[0])), make("td", {}, badge(outcome(answers, row, metric)), doubt), ...texts);
    });
    find("list").replaceChildren(...(whole || rows.length === 0 ? [] : [region("Samples", "plain first list", head, body)]));
    for (const [name, step, there] of [["before", -1, page > 1], ["after", 1, page * PAGE < rows.length]]) {
      find(name).hidden = whole || !there;
      find(name).onclick = () => go({ page: String(page + step) });
    }
  }

  const line = (label, text) => make("p", { className: "said" }, make("small", { textContent: `${label} ` }), text);
  function answer(name, answers, row, metric) {
    const box = make("article", { className: "other" }, make("h3", {}, `${name} `, badge(row ? outcome(answers, row, metric) : "none")));
    if (!row) box.append(line("Not asked", ""));
    else {
      if (row[1] !== null) box.append(line("Response", row[1]));
      if (row[2] !== null && row[2] !== row[1]) box.append(line("Extracted", row[2]));
      if (row[3] !== "ok") box.append(line("Extraction", answers.words[row[3]]));
      const scores = answers.metrics.map((each, place) => [each, row[4][place]]).filter(([, value]) => value !== null);
      box.append(line("Scores", scores.map(([each, value]) => `${each} ${value}`).join(", ") || "none"));
      if (row[5] !== undefined) box.append(line("Not verified", answers.doubts[row[5]]));
    }
    return box;
  }

  function one(metric) {
    const id = state.get("id");
    find("one").hidden = !id;
    if (!id) return;
    const { answers, task, model } = shown;
    const row = answers.rows.find((each) => each[0] === id);
    find("one-title").textContent = id;
    const [question, target] = shown.asked.get(id) ?? [];
    find("asked").replaceChildren(...[["Question", question], ["Reference", target]].filter(([, text]) => text).map(([label, text]) => line(label, text)));
    find("answers").replaceChildren(answer(models.get(model), answers, row, metric));
    const order = rows.some((each) => each[0] === id) ? rows : answers.rows;
    const place = order.findIndex((each) => each[0] === id);
    const wrong = order.slice(place + 1).find((each) => ["wrong", "partly"].includes(outcome(answers, each, metric)));
    for (const [name, to] of [["previous", order[place - 1]], ["next", order[place + 1]], ["wrong", wrong]]) {
      const anchor = find(name);
      anchor.setAttribute("aria-disabled", String(!to));
      if (to) anchor.href = address({ id: to[0] });
      else anchor.removeAttribute("href");
      anchor.onclick = (event) => {
        event.preventDefault();
        if (to) go({ id: to[0] });
      };
    }
    find("up").href = address({ id: "" });
    find("up").onclick = (event) => {
      event.preventDefault();
      go({ id: "" });
    };
    const others = task.models.filter((slug) => slug !== model);
    const all = async () => {
      everyone = true;
      find("everyone").hidden = true;
      for (const slug of others) {
        const theirs = await load(`${task.place}/by-${slug}`);
        if (state.get("id") !== id) return;
        find("answers").append(answer(models.get(slug), theirs, theirs.rows.find((each) => each[0] === id), metric));
      }
    };
    find("everyone").hidden = others.length === 0;
    find("everyone").onclick = all;
    if (everyone) all();
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select")) return;
    const anchor = Array.from(document.querySelectorAll("#one:not([hidden]) a[data-key]")).find((one) => one.dataset.key.split(" ").includes(event.key));
    if (anchor) {
      event.preventDefault();
      anchor.click();
    }
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    const { name, value } = event.target;
    if (name === "task") state = new URLSearchParams(); // another task has other filters
    go({ [name]: value, id: "", page: "" });
  });
  window.addEventListener("popstate", () => {
    state = new URLSearchParams(location.search);
    show();
  });
  show();
})();
