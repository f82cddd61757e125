// Shows the course of a run and its events as they come, and the page of the run once it has ended.
"use strict";
const list = document.getElementById("events");
const latest = document.getElementById("latest");
const course = document.getElementById("course");
const address = `/runs/${list.dataset.id}`;
const source = new EventSource(`${address}/events`);
const most = 500;
const changing = new Set([
  "plan_made", "pass_started", "step_started", "step_finished", "step_skipped", "step_unfolded",
  "validated", "checks_done", "assessed", "refined", "pass_finished",
]);
let isAsking = false;
let isStale = false;

source.addEventListener("message", (message) => {
  const event = JSON.parse(message.data);
  const item = document.createElement("li");
  const step = event.step_id || (event.step && event.step.step_id) || (event.site && event.site.step_id);
  item.textContent = [event.event.replaceAll("_", " "), event.phase, event.call, step].filter(Boolean).join(" · ");
  const isAtEnd = latest.scrollTop + latest.clientHeight > latest.scrollHeight - 20;
  list.append(item);
  if (isAtEnd) latest.scrollTop = latest.scrollHeight;
  while (list.childElementCount > most) list.firstElementChild.remove();
  if (changing.has(event.event)) refresh();
});
source.addEventListener("end", () => {
  source.close();
  const isRead = window.scrollY > 0 || document.activeElement !== document.body;
  if (!isRead) {
    location.reload();
    return;
  }
  const link = document.createElement("a");
  link.href = location.pathname;
  link.textContent = "It has ended: show its page";
  document.getElementById("ended").append(link);
  refresh();
});

// The server answers once there is something new, and seldom enough.
async function refresh() {
  isStale = true;
  if (isAsking) return;
  isAsking = true;
  while (isStale) {
    isStale = false;
    try {
      const answer = await fetch(`${address}/course`);
      if (!answer.ok) continue;
      const made = new DOMParser().parseFromString(await answer.text(), "text/html");
      change(course, made.body);
    } catch {
      // The next event asks again.
    }
  }
  isAsking = false;
}

// Changes only what differs, so that focus, places and open details stay as they are.
function change(old, made) {
  const before = [...old.childNodes];
  const after = [...made.childNodes];
  after.forEach((node, place) => {
    const there = before[place];
    if (!there) old.append(node);
    else if (there.nodeName !== node.nodeName) there.replaceWith(node);
    else if (node.nodeType === Node.ELEMENT_NODE) changeElement(there, node);
    else if (there.data !== node.data) there.data = node.data;
  });
  before.slice(after.length).forEach((node) => node.remove());
}

function changeElement(old, made) {
  for (const name of old.getAttributeNames()) {
    if (name !== "open" && !made.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const name of made.getAttributeNames()) {
    if (old.getAttribute(name) !== made.getAttribute(name)) old.setAttribute(name, made.getAttribute(name));
  }
  change(old, made);
}
