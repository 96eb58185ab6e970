// The page works without this file. With it, the figures are updated by the node's
// events, and ids are decoded without reloading the page.
"use strict";

// merge makes one element equal to another of the same kind. It changes only what
// differs, so that focus, selection and scroll position are kept.
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
let events, again;
let heard = new Date();

// follow keeps the figures up to date while the page is visible. A browser has six
// connections per host, and hidden pages must not occupy them.
function follow() {
  events?.close();
  clearTimeout(again);
  if (document.hidden) return;
  events = new EventSource("/events");
  events.onmessage = ({ data }) => {
    heard = new Date();
    const same = document.createElement("div");
    same.id = live.id;
    same.append(...parse(data).body.childNodes);
    merge(live, same);
  };
  events.onerror = () => {
    stale();
    if (events.readyState === EventSource.CLOSED) again = setTimeout(follow, 5000);
  };
}
document.addEventListener("visibilitychange", follow);
follow();

// stale marks the figures as out of date until the next event.
function stale() {
  live.className = "stale";
  const status = document.getElementById("status");
  status.className = "status bad";
  status.textContent = `No word from the node since ${heard.toISOString().slice(11, 19)}`;
}
setInterval(() => { if (!document.hidden && new Date() - heard > 5000) stale(); }, 1000);

// show loads a decoded id into the page, or shows what is wrong.
async function show(path, options) {
  const reading = document.getElementById("reading");
  let answer, page;
  try {
    // Not relative to the page, whose URL may contain a password.
    answer = await fetch(location.origin + path, options);
    page = await answer.text();
  } catch {
    return fault("The node does not answer.");
  }
  const there = parse(page).getElementById("inspector");
  if (!there) return fault(problem(page) ?? `${answer.status} ${answer.statusText}`);
  const { pathname, search } = new URL(answer.url);
  history.replaceState(null, "", `${pathname}${search}#inspector`);
  merge(reading, there.querySelector("#reading"));
  for (const field of document.getElementById("inspect").querySelectorAll("[name]")) {
    field.value = there.querySelector(`[name=${field.name}]`).value;
  }
  addCopy();
  reading.closest("main").scrollIntoView(); // the reading may be out of view

  function fault(text) {
    const p = document.createElement("p");
    p.className = "fault";
    p.textContent = text;
    reading.replaceChildren(p);
  }
}

// problem returns the detail of a problem (RFC 9457), or undefined for other text.
function problem(text) {
  try {
    return JSON.parse(text).detail;
  } catch {
    return undefined;
  }
}

document.getElementById("inspect").addEventListener("submit", (event) => {
  event.preventDefault();
  const query = new URLSearchParams(new FormData(event.target));
  for (const [name, value] of [...query]) if (!value) query.delete(name);
  show(`/?${query}`);
});

document.getElementById("take").addEventListener("submit", (event) => {
  event.preventDefault();
  const generator = document.getElementById("inspect").elements.generator?.value;
  show("/take", { method: "POST", body: new URLSearchParams(generator ? { generator } : {}) });
});

document.getElementById("reading").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link) return;
  event.preventDefault();
  show(link.pathname + link.search);
});

// addCopy adds a copy button to each text form.
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
