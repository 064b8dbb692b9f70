// The same on every page; without it everything but the charts is there all the same.
"use strict";
document.documentElement.classList.add("scripted");

document.addEventListener("DOMContentLoaded", () => {
  menu();
  code();
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

// What is wider than its box scrolls, by the keyboard too.
function scrollers() {
  for (const box of document.querySelectorAll(".output_html, .highlight pre"))
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
    for (const specification of layouts(chart.specification, room)) {
      if (chart.view) chart.view.finalize();
      chart.view = await vegaEmbed(chart.place, structuredClone(specification), options);
      if (chart.place.querySelector("svg.marks").getBoundingClientRect().width <= room) break;
    }
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

function* layouts(specification, room) {
  yield specification;
  const { hconcat, ...rest } = specification;
  if (!hconcat) return;
  const stacked = hconcat.length > 1 ? { ...rest, vconcat: hconcat } : specification;
  yield stacked;
  const width = Math.max(170, room - 95); // what axis titles and labels take
  const panels = hconcat.map((panel) => ({ ...panel, width: Math.min(width, panel.width ?? width) }));
  const title = wrapped(rest.title, Math.floor((room - 40) / 6.8));
  const legend = { ...(rest.config?.legend ?? {}), orient: "bottom", columns: 2, labelLimit: room / 2 - 40 };
  yield narrowed({ ...rest, title, config: { ...rest.config, legend }, vconcat: panels });
}

// Legends say their columns themselves, which goes before the configuration; words below an axis
// that fit side by side no longer are turned.
function narrowed(specification) {
  return JSON.parse(JSON.stringify(specification), (key, value) => {
    if (key === "legend" && value?.columns) return { ...value, columns: 2 };
    if (key === "x" && value?.type === "nominal" && value.axis)
      return { ...value, axis: { ...value.axis, labelAngle: -40 } };
    if (key === "x" && value?.type === "ordinal" && value.axis)
      return { ...value, axis: { ...value.axis, labelOverlap: "parity", labelSeparation: 4 } };
    return value;
  });
}

// Vega draws a title in one line unless it is given several.
function wrapped(title, letters) {
  if (!title || typeof title === "string") return title;
  const lines = (text) =>
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
    Object.entries(title).map(([key, value]) =>
      key === "text" || key === "subtitle" ? [key, lines(value)] : [key, value],
    ),
  );
}
