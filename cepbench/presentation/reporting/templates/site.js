// The same on every page; without it everything but the charts is there all the same.
"use strict";
document.documentElement.classList.add("scripted");

document.addEventListener("DOMContentLoaded", () => {
  menu();
  code();
  search();
  filters();
  scrollers();
  charts();
});

function menu() {
  const button = document.getElementById("menu");
  const pages = document.querySelector("nav.pages");
  button.addEventListener("click", () => {
    const shown = pages.classList.toggle("shown");
    button.setAttribute("aria-expanded", String(shown));
  });
}

// One switch for all code of the page, which says what it will do: hide what is shown, also by
// hand, or else show all. The choice is kept for the other pages.
function code() {
  const button = document.getElementById("show-code");
  if (!button) return;
  const cells = [...document.querySelectorAll("details.code")];
  button.hidden = !cells.length;
  const isShown = () => cells.some((cell) => cell.open);
  const label = () => {
    button.textContent = isShown() ? "Hide code" : "Show code";
    button.setAttribute("aria-expanded", String(isShown()));
  };
  const show = (shown) => {
    for (const cell of cells) cell.open = shown;
    label();
  };
  const kept = remembered();
  if (kept !== null) show(kept === "shown");
  label();
  for (const cell of cells) cell.addEventListener("toggle", label);
  button.addEventListener("click", () => {
    const shown = !isShown();
    show(shown);
    remembered(shown ? "shown" : "folded");
  });
}

function remembered(choice) {
  try {
    if (choice) localStorage.setItem("cepbench-code", choice);
    return localStorage.getItem("cepbench-code");
  } catch {
    return null; // some browsers keep nothing for files
  }
}

// Links to what has all words searched for, those that have the first one earliest first. The index is a
// script, since a page that lies on a disk may load nothing else, and comes with the first search.
function search() {
  const field = document.getElementById("search"), list = document.getElementById("found");
  let index;
  const load = () =>
    new Promise((resolve) => {
      window.cepbenchFound = resolve;
      const script = document.createElement("script");
      script.src = field.dataset.index;
      document.head.append(script);
    });
  const show = async () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const all = await (index ??= load());
    const place = (one) => one[1].toLowerCase().indexOf(words[0]);
    const found = all.filter(([, text]) => words.every((word) => text.toLowerCase().includes(word)));
    found.sort((one, other) => place(one) - place(other));
    const shown = words.length ? found.slice(0, 12) : [];
    list.hidden = !words.length;
    const items = shown.map(([kind, text, link]) => {
      const item = document.createElement("li"), a = document.createElement("a");
      a.href = field.dataset.root + link;
      a.append(text, Object.assign(document.createElement("span"), { textContent: kind }));
      item.append(a);
      return item;
    });
    const none = Object.assign(document.createElement("li"), { textContent: "nothing found" });
    list.replaceChildren(...(items.length ? items : [none]));
  };
  field.addEventListener("input", show);
  field.parentElement.addEventListener("keydown", (event) => {
    if (event.key === "Escape") list.hidden = true;
    if (event.key === "Enter" && event.target === field) list.querySelector("a")?.click();
  });
  document.addEventListener("click", (event) => {
    if (!field.parentElement.contains(event.target) || event.target.closest("#found a")) list.hidden = true;
  });
}

// What has the words searched for, and the data chosen; the choice is kept in the address, so that it can
// be shared. An address may also name one, which is opened.
function filters() {
  const form = document.querySelector(".filters");
  if (!form) return;
  const fields = [...form.querySelectorAll("input, select")];
  const all = [...document.querySelectorAll(".filtered > details, .filtered tbody > tr[data-paper]")];
  const fits = (one) => fields.every(({ name, value }) => {
    if (!value) return true;
    if (name in one.dataset) return one.dataset[name].split("|").includes(value);
    const own = one.textContent.toLowerCase();
    return value.toLowerCase().split(/\s+/).every((word) => own.includes(word));
  });
  const show = () => {
    for (const one of all) one.hidden = !fits(one);
    const left = all.filter((one) => !one.hidden).length;
    form.querySelector("output").textContent = `${left} ${form.dataset.what}${left === 1 ? "" : "s"}`;
  };
  const keep = () => {
    show();
    const kept = fields.filter((field) => field.value).map((field) => [field.name, field.value]);
    history.replaceState(null, "", kept.length ? `#${new URLSearchParams(kept)}` : location.pathname);
  };
  const read = () => {
    const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const chosen = new URLSearchParams(named ? "" : location.hash.slice(1));
    for (const field of fields) field.value = chosen.get(field.name) ?? "";
    show();
    if (!all.includes(named)) return;
    named.open = true;
    named.scrollIntoView();
  };
  for (const field of fields) field.addEventListener("input", keep);
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", read);
  read();
}

// What is wider than its box scrolls, by the keyboard too.
function scrollers() {
  for (const box of document.querySelectorAll(".output_html, .highlight pre, .paper"))
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
}

// Charts are as wide as their panels side by side; where that is too wide the panels are stacked,
// and where one is too wide still it is made narrower, down to what can be read.
function charts() {
  const all = [...document.querySelectorAll("script.chart-specification")].map((script) => ({
    place: document.getElementById(script.dataset.chart),
    specification: JSON.parse(script.textContent),
  }));
  if (!all.length) return;
  // "export" makes pictures in the page itself; "editor" would send the data to a web site.
  const actions = { export: true, source: false, compiled: false, editor: false };
  const options = { actions, renderer: "svg", tooltip: { theme: "light" } };
  const draw = async (chart) => {
    const room = roomIn(chart.place);
    const wanted = layouts(chart.specification, room);
    let width;
    for (let next = wanted.next(); !next.done; next = wanted.next(width)) {
      if (chart.view) chart.view.finalize();
      chart.view = await vegaEmbed(chart.place, structuredClone(next.value), options);
      width = chart.place.querySelector("svg.marks").getBoundingClientRect().width;
      if (width <= room) break;
    }
    const menu = chart.place.querySelector("details > summary");
    menu?.setAttribute("aria-label", "Save as a picture: " + chart.specification.description);
    chart.room = room;
    chart.place.dataset.drawn = chart.place.clientWidth;
  };
  const failed = (chart, error) => {
    chart.place.textContent = "This chart could not be drawn: " + error;
  };
  const drawAll = async () => {
    for (const chart of all) {
      if (chart.room === roomIn(chart.place)) continue;
      await draw(chart).catch((error) => failed(chart, error));
    }
  };
  let drawn = drawAll();
  let waiting;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => (drawn = drawn.then(drawAll)), 200);
  });
}

function roomIn(place) {
  const style = getComputedStyle(place);
  return Math.floor(place.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight));
}

// Each layout in turn, from the widest; it is told how wide the one before was.
function* layouts(specification, room) {
  const wide = widened(specification, room, 90); // for titles and labels
  const beyond = wide ? (yield wide) - room : 0; // by names at the ends of lines
  const less = beyond > 0 ? widened(specification, room - beyond, 90) : null;
  if (less) yield less;
  yield specification;
  const { hconcat, vconcat: rows = hconcat, ...rest } = specification;
  // Data of all panels of a row are the row's.
  const vconcat = rows?.flatMap(({ hconcat: own, ...row }) => own?.map((panel) => ({ ...row, ...panel })) ?? [row]);
  if (hconcat?.length > 1 || vconcat?.length > rows?.length) yield named({ ...rest, vconcat });
  const title = wrapped(rest.title, room - 10);
  const within = (width, columns) => {
    const fitted = (panel) => ({
      ...panel,
      width: Math.min(width, panel.width ?? width),
      title: wrapped(panel.title, room - 60),
    });
    const body = vconcat ? { ...rest, vconcat: vconcat.map(fitted) } : fitted(rest);
    const own = { orient: "bottom", columns, labelLimit: room / columns - 40 };
    const config = { ...rest.config, legend: { ...rest.config?.legend, ...own } };
    return narrowed(named({ ...body, title, config }), columns);
  };
  const widest = Math.max(...(vconcat ?? [rest]).map((panel) => panel.width ?? 0));
  const width = Math.min(widest || room, Math.max(170, room - 95)); // less titles and labels
  let least = width;
  // Names at the ends of lines move less than the panel's edge.
  for (let turn = 0; turn < 5; turn++) least = Math.max(100, least - Math.ceil((yield within(least, 2)) - room));
  yield within(least, 1);
}

// Panels share the room of their row; a single one does not become a banner. Null where they have no more room.
function widened(specification, room, beside) {
  const rows = specification.vconcat ?? [specification];
  const panels = rows.map((row) => row.hconcat ?? [row]);
  const most = Math.max(...panels.map((row) => row.length));
  const width = Math.min(760, Math.floor(room / most - beside));
  const fits = panels.flat().every((panel) => panel.width * 0.75 < width && panel.height);
  if (!fits) return null;
  const wider = (panel) => ({ ...panel, width, height: Math.max(panel.height, Math.min(320, width / 2)) });
  const own = (row) => (row.hconcat ? { ...row, hconcat: row.hconcat.map(wider) } : wider(row));
  return specification.vconcat ? { ...specification, vconcat: rows.map(own) } : own(specification);
}

// Side by side, the first panel names the rows of all; one below the other, each names its own.
function named(specification) {
  return JSON.parse(JSON.stringify(specification), (key, value) =>
    key === "y" && value?.axis?.labels === false ? { ...value, axis: { ...value.axis, labels: true } } : value,
  );
}

// Legends say their columns themselves, which goes before the configuration; words below an axis
// that fit side by side no longer are turned.
function narrowed(specification, columns) {
  return JSON.parse(JSON.stringify(specification), (key, value) => {
    if (key === "legend" && value?.columns) return { ...value, columns };
    if (key === "x" && value?.type === "nominal" && value.axis)
      return { ...value, axis: { ...value.axis, labelAngle: -40 } };
    if (key === "x" && value?.type === "ordinal" && value.axis)
      return { ...value, axis: { ...value.axis, labelOverlap: "parity", labelSeparation: 4 } };
    return value;
  });
}

// Vega draws a title in one line unless it is given several.
function wrapped(title, room) {
  if (!title) return title;
  if (typeof title === "string") return wrapped({ text: title }, room).text;
  const lines = (text, letters) =>
    [text].flat().flatMap((line) => {
      const found = [""];
      for (const word of String(line).split(" ")) {
        const last = found.at(-1);
        if (last && last.length + word.length >= letters) found.push(word);
        else found[found.length - 1] = last ? last + " " + word : word;
      }
      return found;
    });
  return Object.fromEntries(
    Object.entries(title).map(([key, value]) => {
      if (key !== "text" && key !== "subtitle") return [key, value];
      return [key, lines(value, Math.floor(room / (key === "text" ? 9 : 7)))]; // pixels a letter
    }),
  );
}
