// Live updates of a conversation and of the home page. Each event carries a complete entry or section, so that a repeated event
// changes nothing.
"use strict";
const live = document.querySelector("[data-live]"), root = document.documentElement;
const FOCUSABLE = "a,button,summary", REPLIES = ".outbound:not(.partial) .message-text";
// What the buttons of an element decide about.
const promptId = (element) => element?.querySelector("[name=question]")?.value ?? element?.dataset.guard;
const label = (element) => element?.getAttribute("aria-label") || element?.textContent;
const queryAll = (element, selector) => (element ? [...element.querySelectorAll(selector)] : []);
let cursor = live?.dataset.after, retryDelay = 500, lostTimer = 0, source;
function insertEntry(entry) {
  const entries = [...live.children], time = Number(entry.dataset.at);
  // An entry from before this page begins belongs to an older page, if there is one.
  if (document.getElementById("older") && entries.length && time < Number(entries[0].dataset.at)) return;
  live.insertBefore(entry, entries.find((other) => Number(other.dataset.at) > time) || null);
  document.getElementById("empty")?.remove();
}
function renderEvent(event) {
  const template = document.createElement("template");
  template.innerHTML = event.data;
  render(template.content.firstElementChild);
  if (event.lastEventId) cursor = event.lastEventId;
}
function render(next) {
  const old = document.getElementById(next.id), oldDetails = queryAll(old, "details");
  const atEnd = live?.id === "thread" && innerHeight + scrollY >= root.scrollHeight - 80;
  const focused = document.activeElement, focusIndex = queryAll(old, FOCUSABLE).indexOf(focused);
  queryAll(next, "details").forEach((details, index) => { details.open = oldDetails[index]?.open || false; });
  if (old) old.replaceWith(next); else insertEntry(next);
  // The confirmation prompt changed: disable its buttons for a moment, so that nobody presses one without reading the new prompt.
  if (promptId(next) !== promptId(old)) queryAll(next, "button").forEach((button) => { button.disabled = true; setTimeout(() => { button.disabled = false; }, 1000); });
  else if (focusIndex >= 0) {
    const candidates = queryAll(next, FOCUSABLE), same = candidates.find((element, index) => index === focusIndex && label(element) === label(focused))
      || candidates.find((element) => label(element) === label(focused));
    (same || (focused.tagName === "SUMMARY" && candidates[focusIndex]))?.focus?.({ preventScroll: true });
  }
  const replies = queryAll(next, REPLIES);
  if (replies.length > queryAll(old, REPLIES).length) document.getElementById("announce").textContent = replies.at(-1).textContent;
  const announced = next.dataset.announce;
  if (announced && announced !== old?.dataset.announce) document.getElementById("announce").textContent = announced;
  if (atEnd) scrollTo(0, root.scrollHeight);
}
// Pages without a stream of events are loaded again while they are visible, and their changed part is replaced.
async function refresh(part) {
  const current = document.getElementById(part.id);
  const isEdited = (field) => field === document.activeElement || field.value !== field.defaultValue;
  if (document.hidden || queryAll(current, "input:not([type=hidden]),textarea").some(isEdited)) return;
  const response = await fetch(location.href, { redirect: "manual" }).catch(() => null);
  if (!response?.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html"), next = page.getElementById(part.id);
  if (next && next.innerHTML !== current.innerHTML) render(document.importNode(next, true));
}
for (const part of queryAll(document, "[data-refresh]")) setInterval(() => refresh(part), Number(part.dataset.refresh) * 1000);
function connect() {
  const lost = document.getElementById("lost");
  source?.close();
  source = new EventSource(`${live.dataset.live}?after=${cursor}`);
  source.onopen = () => { clearTimeout(lostTimer); lostTimer = 0; lost.hidden = true; retryDelay = 500; };
  for (const name of ["turn", "head", "section"]) source.addEventListener(name, renderEvent);
  source.addEventListener("reset", () => { source.close(); location.reload(); });
  source.onerror = () => {
    // Browsers soon reopen a stream that ended; only a longer interruption is shown.
    lostTimer ||= setTimeout(() => { lost.hidden = false; }, 4000);
    // The browser does not reconnect to a source that is closed, e.g. after a response that was not a stream.
    if (source.readyState === EventSource.CLOSED) { setTimeout(reconnect, retryDelay); retryDelay = Math.min(retryDelay * 2, 30000); }
  };
}
async function reconnect() {
  // After the end of the session, the page redirects to the sign-in.
  const page = await fetch(location.pathname, { method: "HEAD", redirect: "manual" }).catch(() => null);
  if (page?.type === "opaqueredirect") location.reload(); else connect();
}
if (live) connect();
// A conversation opens at its newest message.
if (live?.id === "thread" && !location.hash) scrollTo(0, root.scrollHeight);
// Browsers limit the connections to one host: hidden pages release theirs.
if (live) addEventListener("visibilitychange", () => { if (document.hidden) source.close(); else if (source.readyState === EventSource.CLOSED) connect(); });
document.getElementById("text")?.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); event.target.form.requestSubmit(); }
});
