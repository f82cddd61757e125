"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const NAMES = ["completeness", "coherence", "consistency"];
const byId = (id) => document.getElementById(id);

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null && child !== ""));
  return made;
}

// What a pass fails with these thresholds: its low scores, and what failed whatever the thresholds are.
function failing(one, thresholds) {
  return [...NAMES.filter((name) => one.scores[name] < thresholds[name]).map((name) => data.low[name]), ...one.otherwise];
}

// --- Commands: what is to be filled in, copying; saving a label of an answer

async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    const open = [...new Set([...button.parentElement.querySelectorAll("mark")].map((each) => each.textContent))];
    button.textContent = open.length ? `Copied: fill in ${open.join(" and ")}` : "Copied";
  } catch {
    const code = button.previousElementSibling;
    if (code) getSelection().selectAllChildren(code);
    button.textContent = "Press Ctrl-C";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 3000);
}

const BLANK = /((?<=inputs\.)NAME(?==)|(?<==)(?:NAME|WORDS|MODULE:FUNCTION)(?!\S)|(?<==)"?\.\.\."?(?!\S))/;

document.querySelectorAll(".command code").forEach((code) => {
  const parts = code.textContent.split(BLANK);
  if (parts.length > 1) code.replaceChildren(...parts.map((part, place) => (place % 2 ? element("mark", {}, part) : part)));
});

function commandLine(text) {
  return element("div", { class: "command" }, element("code", { tabindex: "0", dir: "ltr" }, text),
    element("button", { type: "button", class: "copy" }, "Copy"));
}

// A line for `aeon calibrate`: the answer that was judged in a pass, and whether a person finds it good.
function saveLabel(number, good) {
  const said = data.passes.find((one) => one.pass === number);
  const inputs = Object.fromEntries(Object.entries(labels.inputs).map(([name, text]) => [name, textOf(text)]));
  const line = { task: textOf(labels.task), answer: textOf(labels.answers[number]), good, inputs,
    run: data.run, pass: number, converged: said.converged, scores: said.scores, time: new Date().toISOString() };
  const link = element("a", { download: `label-${data.run}-pass-${number}.jsonl` });
  link.href = URL.createObjectURL(new Blob([JSON.stringify(line) + "\n"], { type: "application/x-ndjson" }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.matches(".copy")) copyText(button.previousElementSibling.textContent, button);
  if (button.dataset.label && labels) {
    saveLabel(Number(button.dataset.label), button.dataset.good === "true");
    button.closest("p").querySelectorAll("button").forEach((one) => one.setAttribute("aria-pressed", one === button));
  }
});

// --- Thresholds

const sliders = [...document.querySelectorAll("[data-threshold]")];

function moveThreshold(slider) {
  const figure = slider.closest("figure"), chart = figure.querySelector("svg.scores"), line = chart.querySelector(".threshold");
  const { low, top, bottom } = chart.dataset;
  const y = bottom - Math.max(0, (slider.value - low) / (1 - low)) * (bottom - top);
  line.setAttribute("y1", y);
  line.setAttribute("y2", y);
  for (const dot of chart.querySelectorAll(".dot")) {
    const reached = Number(dot.dataset.value) >= Number(slider.value);
    dot.classList.toggle("ok", reached);
    dot.classList.toggle("low", !reached);
  }
  figure.querySelector("output").textContent = Number(slider.value).toFixed(slider.step.length - 2);
}

function showThresholds() {
  const wanted = Object.fromEntries(sliders.map((one) => [one.dataset.threshold, Number(one.value)]));
  const asked = { ...data.thresholds, ...wanted };
  sliders.forEach(moveThreshold);
  const judged = data.passes.map((one) => [one, failing(one, asked)]);
  const first = judged.find(([, codes]) => !codes.length);
  const last = judged[judged.length - 1];
  const failed = ([one, codes]) => codes.map((code) => (one.criteria.some(([name]) => name === code) ? `the criterion ${code} is not met` : code)).join(", ");
  const moved = NAMES.filter((name) => asked[name] !== data.thresholds[name]);
  byId("what-if").textContent = first
    ? `${moved.length ? "With these thresholds it would have converged" : "It converged"} in pass ${first[0].pass}.`
    : `${moved.length ? "With these thresholds no pass would have converged" : "No pass converged"}. Pass ${last[0].pass}: ${failed(last)}.`;
  const box = byId("what-if-command");
  box.hidden = !moved.length;
  box.querySelector("code").textContent = [data.command, ...moved.map((name) => `convergence.${name}=${asked[name]}`)].join(" ");
}

sliders.forEach((slider) => slider.addEventListener("input", showThresholds));
if (sliders.length) showThresholds();

// --- What is packed: calls, the lines of their texts, and the passes before the last

const ENDINGS = ["\n", "\\n"];
let lines = [], calls = [], labels = null, endpoints = 0, shown = new Map(), articles = new Map();

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

function textOf(reference) {
  const [ending, ...stretches] = reference, found = [];
  for (let place = 0; place < stretches.length; place += 2) {
    for (let line = stretches[place], end = line + stretches[place + 1]; line < end; line += 1) found.push(lines[line]);
  }
  return found.join(ENDINGS[ending]);
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

// --- Answers of single passes

function placeAnswers(texts) {
  document.querySelectorAll("[data-answer]").forEach((holder) => {
    const text = element("pre", { class: "answer-text", dir: "auto", tabindex: "0" });
    text.innerHTML = texts[holder.dataset.answer]; // escaped where it was written
    holder.append(text);
  });
}

// --- Passes

const slider = byId("pass-slider");

function showPass(number) {
  articles.forEach((article, of) => { article.hidden = of !== number; });
  slider.value = number;
  byId("pass-shown").textContent = number;
}

function placePasses(packed) {
  const holder = byId("passes"), last = holder.firstElementChild;
  packed.forEach((html, number) => {
    last.insertAdjacentHTML("beforebegin", html);
    articles.set(number, last.previousElementSibling);
  });
  articles.set(packed.length, last);
  showPass(packed.length);
  slider.addEventListener("input", () => showPass(Number(slider.value)));
}

// --- Calls

const nameOf = (call) => data.names[call] || call;

const compact = (number) => (number >= 10000 ? `${(number / 1000).toFixed(0)}k` : number.toLocaleString("en"));

const secondsOf = (seconds) => (seconds < 0.9995 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`);

function rowOf(call) {
  const row = element("details", { id: call.id, class: "call" });
  const tokens = call.in == null ? "" : `${compact(call.in)} → ${compact(call.out)}`;
  row.append(element("summary", {},
    element("span", { class: "number" }, call.id.startsWith("tool") ? call.id : `#${call.id.slice(5)}`),
    element("span", { class: `kind k-${call.kind}` }, call.repair ? `repair of ${nameOf(call.repairs || call.call)}` : nameOf(call.call)),
    element("bdi", { class: "what" }, call.step || ""),
    element("span", { class: "where" }, `pass ${call.pass}`),
    element("span", { class: "tokens" }, tokens),
    element("span", { class: "seconds" }, data.timed ? secondsOf(call.s) : ""),
    element("span", { class: "marks" }, endpoints > 1 && call.endpoint ? element("span", { class: "code", title: "the endpoint that was asked" }, call.endpoint) : "",
      call.critical ? element("span", { class: "code", title: "on the critical path: the run waited for it" }, "critical") : "",
      call.error ? element("span", { class: "code low" }, call.error) : "")));
  row.addEventListener("toggle", () => { if (row.open) unfold(row, call); });
  return row;
}

function unfold(row, call) {
  if (row.childElementCount === 1) row.append(bodyOf(call));
}

function block(title, text, open = false) {
  return element("details", { class: "block", open }, element("summary", {}, `${title} `, element("small", {}, `${text.length.toLocaleString("en")} characters`)),
    element("pre", { dir: "auto", tabindex: "0" }, text));
}

// An answer in JSON field by field, with its texts as text; and as it came.
function answerOf(call) {
  const text = textOf(call.answer), name = call.kind === "tool" ? "Output" : "Answer";
  let fields;
  try {
    fields = JSON.parse(text);
  } catch {
    return [block(name, text, true)];
  }
  if (!fields || typeof fields !== "object" || Array.isArray(fields)) return [block(name, pretty(text), true)];
  const readable = element("details", { class: "block", open: true }, element("summary", {}, name));
  for (const [field, value] of Object.entries(fields)) {
    if (value === null || value === "" || (Array.isArray(value) && !value.length)) continue;
    const plain = typeof value !== "object";
    readable.append(element("div", { class: "field" }, element("p", { class: "name" }, field),
      element("pre", { dir: "auto", tabindex: "0", class: plain ? null : "json" }, plain ? String(value) : JSON.stringify(value, null, 2))));
  }
  return [readable, block(`${name} as it came`, text)];
}

function bodyOf(call) {
  const facts = { call: call.call === nameOf(call.call) ? null : call.call, role: call.role, model: call.model, endpoint: call.endpoint, phase: call.phase, began: data.timed ? secondsOf(call.at) : null, took: data.timed ? secondsOf(call.s) : null,
    "tokens in": call.in, cached: call.cached, "written to cache": call.cache_write, "tokens out": call.out, reasoning: call.reasoning, cost: call.cost,
    "characters cut": call.cut, repair: call.repair ? `attempt ${call.repair}` : null, ...call.parameters };
  const body = element("div", { class: "body" }, element("dl", { class: "facts" }, ...Object.entries(facts)
    .filter(([, value]) => value != null && value !== "")
    .map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, String(value))))));
  if (call.error) body.append(element("p", { class: "said", dir: "auto" }, `${call.error}: ${call.message || ""}`));
  if (call.arguments) body.append(block("Arguments", pretty(textOf(call.arguments)), true));
  if (call.answer) body.append(...answerOf(call));
  for (const [role, text] of call.messages || []) body.append(block(`Prompt: ${role}`, textOf(text)));
  if (call.schema) body.append(block("Schema", pretty(textOf(call.schema))));
  if (!call.answer && !call.error) body.append(element("p", { class: "quiet" }, "Its prompt and answer are not stored (store=off, or store.sqlite is gone)."));
  if (call.messages) {
    body.append(element("p", { class: "way" }, "This call's prompt and schema in a small worked example, with the settings of this run"),
      commandLine(`${data.program} render ${call.call} ${data.render}`));
    if (data.replay) body.append(element("p", { class: "way" }, "The whole run again from its stored answers, without a model"), commandLine(data.replay));
  }
  return body;
}

const searched = new Map();

function textsOf(call) {
  if (!searched.has(call.id)) {
    const references = [call.answer, call.arguments, ...(call.messages || []).map(([, text]) => text)].filter(Boolean);
    const words = [call.call, call.step, call.error, call.message, call.model];
    searched.set(call.id, [...words, ...references.map(textOf)].join("\n").toLowerCase());
  }
  return searched.get(call.id);
}

function filterCalls() {
  const wanted = byId("search").value.trim().toLowerCase(), pass = byId("only-pass").value, kind = byId("only-kind").value;
  let number = 0;
  for (const call of calls) {
    const fits = (!pass || String(call.pass) === pass) && (!kind || call.kind === kind) && (!wanted || textsOf(call).includes(wanted));
    shown.get(call.id).hidden = !fits;
    number += fits;
  }
  byId("count").textContent = number === calls.length ? `${number} calls` : `${number} of ${calls.length} calls`;
}

function openTarget() {
  const id = decodeURIComponent(location.hash.slice(1));
  const pass = /^pass-(\d+)$/.exec(id);
  if (pass && articles.has(Number(pass[1]))) showPass(Number(pass[1]));
  const target = byId(id);
  const holder = target && target.closest("details");
  if (holder) {
    holder.hidden = false;
    holder.open = true;
  }
  if (target) target.scrollIntoView();
}

async function begin() {
  const packed = await unpack(data.packed);
  ({ lines, calls, labels } = packed);
  endpoints = new Set(calls.map((call) => call.endpoint).filter(Boolean)).size;
  placePasses(packed.passes.map(textOf));
  placeAnswers(packed.answers);
  calls.forEach((call) => shown.set(call.id, rowOf(call)));
  byId("list").append(...shown.values());
  if (!calls.length) byId("list").append(element("p", { class: "quiet" }, "There is no journal of this run, so its calls are not known."));
  let waiting;
  byId("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filterCalls, 120); });
  ["only-pass", "only-kind"].forEach((id) => byId(id).addEventListener("change", filterCalls));
  filterCalls();
  addEventListener("hashchange", openTarget);
  if (location.hash) openTarget();
  document.body.dataset.ready = "true";
}

// On paper: every pass, what the judge said, each answer of a pass, and each call with its answer; prompts stay folded.
let folded = [];

addEventListener("beforeprint", () => {
  articles.forEach((article) => { article.hidden = false; });
  calls.forEach((call) => unfold(shown.get(call.id), call));
  folded = [...document.querySelectorAll(".judge:not([open]), .call:not([open]), .answer-of:not([open]), .rounds:not([open]), .tool-call:not([open]), #patterns details:not([open])")];
  folded.forEach((one) => { one.open = true; });
});
addEventListener("afterprint", () => {
  folded.forEach((one) => { one.open = false; });
  showPass(Number(slider.value));
});
requestAnimationFrame(() => setTimeout(begin)); // after what stands there is painted
