// Shows the events of a run as they come, and the page of the run once it has ended.
"use strict";
const list = document.getElementById("events");
const source = new EventSource(`/runs/${list.dataset.id}/events`);
const most = 500;
source.addEventListener("message", (message) => {
  const event = JSON.parse(message.data);
  const item = document.createElement("li");
  const step = event.step_id || (event.step && event.step.step_id) || (event.site && event.site.step_id);
  item.textContent = [event.event.replaceAll("_", " "), event.phase, event.call, step].filter(Boolean).join(" · ");
  list.append(item);
  while (list.childElementCount > most) list.firstElementChild.remove();
});
source.addEventListener("end", () => {
  source.close();
  location.reload();
});
