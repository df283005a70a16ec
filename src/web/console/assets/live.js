// Follows a conversation: each event carries a whole entry, so that a repeated event changes nothing.
"use strict";
const thread = document.querySelector("#thread[data-live]"), root = document.documentElement;
const STOPS = "a,button,summary", ANSWERS = ".ours:not(.partial) .spoken";
const asks = (at) => at?.querySelector("[name=question]")?.value;
const all = (at, what) => (at ? [...at.querySelectorAll(what)] : []);
let after = thread?.dataset.after, pause = 500, late = 0, source;
function place(next) {
  const entries = [...thread.children], at = Number(next.dataset.at);
  // An entry from before this page begins belongs to an older page, if there is one.
  if (document.getElementById("older") && entries.length && at < Number(entries[0].dataset.at)) return;
  thread.insertBefore(next, entries.find((one) => Number(one.dataset.at) > at) || null);
  document.getElementById("empty")?.remove();
}
function show(event) {
  const box = document.createElement("template");
  box.innerHTML = event.data;
  const next = box.content.firstElementChild, old = document.getElementById(next.id), was = all(old, "details");
  const atEnd = innerHeight + scrollY >= root.scrollHeight - 80, held = all(old, STOPS).indexOf(document.activeElement);
  all(next, "details").forEach((one, number) => { one.open = was[number]?.open || false; });
  if (old) old.replaceWith(next); else place(next);
  // A different confirmation prompt replaced the old one: an operator about to press a button has not read it yet.
  if (asks(next) !== asks(old)) all(next, "button").forEach((one) => { one.disabled = true; setTimeout(() => { one.disabled = false; }, 1000); });
  else if (held >= 0) all(next, STOPS)[held]?.focus({ preventScroll: true });
  const said = all(next, ANSWERS);
  if (said.length > all(old, ANSWERS).length) document.getElementById("announce").textContent = said.at(-1).textContent;
  if (atEnd) scrollTo(0, root.scrollHeight);
  if (event.lastEventId) after = event.lastEventId;
}
function follow() {
  const lost = document.getElementById("lost");
  source?.close();
  source = new EventSource(`${thread.dataset.live}?after=${after}`);
  source.onopen = () => { clearTimeout(late); late = 0; lost.hidden = true; pause = 500; };
  for (const name of ["turn", "head"]) source.addEventListener(name, show);
  source.addEventListener("reset", () => { source.close(); location.reload(); });
  source.onerror = () => {
    // The browser soon reopens a stream that ended; only a lasting interruption is shown.
    late ||= setTimeout(() => { lost.hidden = false; }, 4000);
    // Closed permanently, e.g. after a response that was not a stream: the browser does not reconnect automatically.
    if (source.readyState === EventSource.CLOSED) { setTimeout(comeBack, pause); pause = Math.min(pause * 2, 30000); }
  };
}
async function comeBack() {
  // After the end of the session the page itself redirects to the sign-in.
  const page = await fetch(location.pathname, { method: "HEAD", redirect: "manual" }).catch(() => null);
  if (page?.type === "opaqueredirect") location.reload(); else follow();
}
if (thread) follow();
// A browser opens only a few connections to one host: hidden pages leave theirs to others.
if (thread) addEventListener("visibilitychange", () => { if (document.hidden) source.close(); else if (source.readyState === EventSource.CLOSED) follow(); });
document.getElementById("text")?.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); event.target.form.requestSubmit(); }
});
