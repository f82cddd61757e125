"use strict";
const table = document.getElementById("table");
if (table) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells], rows = [...body.rows];
  const words = document.getElementById("words"), end = document.getElementById("ends");
  const endColumn = heads.findIndex((head) => head.textContent.trim() === (end.dataset.column || "ended by"));
  const counted = document.getElementById("count"), noun = counted.textContent.trim().split(" ").pop();
  const value = (row, column) => row.cells[column].dataset.value;
  const compare = (a, b) => {
    const x = Number(a), y = Number(b);
    return a === "" || b === "" ? (a === "") - (b === "") : isNaN(x) || isNaN(y) ? a.localeCompare(b) : x - y;
  };
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    // What is not known stands last, whatever the order.
    const known = (row) => value(row, column) !== "";
    rows.sort((a, b) => (down && known(a) && known(b) ? -1 : 1) * compare(value(a, column), value(b, column)));
    body.append(...rows);
  }));
  const filter = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !wanted.every((word) => text.includes(word)) || (end.value && value(row, endColumn) !== end.value);
      shown += !row.hidden;
    }
    counted.textContent = `${shown} of ${rows.length} ${noun}`;
  };
  words.addEventListener("input", filter);
  end.addEventListener("change", filter);
  words.form.addEventListener("submit", (event) => event.preventDefault());
  filter();
}
const openTarget = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target || !target.matches("details")) return;
  target.open = true;
  target.scrollIntoView();
};
addEventListener("hashchange", openTarget);
openTarget();
document.body.dataset.ready = "";

// On paper everything is unfolded.
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  folded.forEach((one) => { one.open = true; });
});
addEventListener("afterprint", () => { folded.forEach((one) => { one.open = false; }); });
