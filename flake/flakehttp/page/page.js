// The page works without this. With it, the figures are renewed as the node's
// events come, and ids are taken apart without loading the page anew.
"use strict";

// merge makes one element like another of the same kind, and touches only what
// differs, so that focus, selection and scrolling stay.
function merge(to, from) {
  for (const { name, value } of from.attributes) {
    if (to.getAttribute(name) !== value) to.setAttribute(name, value);
  }
  for (const { name } of [...to.attributes]) {
    if (!from.hasAttribute(name)) to.removeAttribute(name);
  }
  const old = [...to.childNodes];
  [...from.childNodes].forEach((node, i) => {
    if (!old[i]) {
      to.append(node);
    } else if (old[i].nodeName !== node.nodeName) {
      old[i].replaceWith(node);
    } else if (node.nodeType === Node.ELEMENT_NODE) {
      merge(old[i], node);
    } else if (old[i].data !== node.data) {
      old[i].data = node.data;
    }
  });
  old.slice(from.childNodes.length).forEach((node) => node.remove());
}

const parse = (html) => new DOMParser().parseFromString(html, "text/html");

const live = document.getElementById("live");
const events = new EventSource("/events");
events.onmessage = ({ data }) => {
  const body = parse(data).body;
  const same = document.createElement("div");
  same.id = live.id;
  same.append(...body.childNodes);
  merge(live, same);
};
events.onerror = () => {
  const status = document.getElementById("status");
  status.className = "status bad";
  status.textContent = "No connection to the node";
};

// show loads a reading of an id into the page.
async function show(url, options) {
  const answer = await fetch(url, options);
  const reading = parse(await answer.text()).getElementById("inspector");
  if (!reading) return false;
  const now = document.getElementById("reading");
  merge(now, reading.querySelector("#reading"));
  const form = document.getElementById("inspect");
  for (const name of ["id", "base"]) {
    form.elements[name].value = reading.querySelector(`[name=${name}]`).value;
  }
  addCopy();
  return true;
}

document.getElementById("inspect").addEventListener("submit", (event) => {
  event.preventDefault();
  const query = new URLSearchParams(new FormData(event.target));
  for (const [name, value] of [...query]) if (!value) query.delete(name);
  go(`/?${query}`);
});

async function go(url) {
  history.replaceState(null, "", `${url}#inspector`);
  await show(url);
}

document.getElementById("take").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = document.getElementById("inspect");
  const body = new URLSearchParams();
  if (form.elements.generator) body.set("generator", form.elements.generator.value);
  const answer = await fetch("/take", { method: "POST", body });
  if (answer.ok) go(new URL(answer.url).pathname + new URL(answer.url).search);
  else location.reload();
});

document.getElementById("reading").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link) return;
  event.preventDefault();
  go(link.pathname + link.search);
});

// addCopy puts a button beside each text.
function addCopy() {
  if (!navigator.clipboard) return;
  for (const cell of document.querySelectorAll(".texts td")) {
    if (cell.querySelector("button")) continue;
    const text = cell.textContent;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy ${text}`);
    button.onclick = async () => {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    };
    cell.append(button);
  }
}
addCopy();
