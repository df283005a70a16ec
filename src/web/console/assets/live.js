// Follows a conversation: each event brings a whole entry, so that one told twice changes nothing.
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
  // Another question in the same place: whoever was about to press a button has not read it.
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
    // A stream that ends by itself is back in a moment; only what lasts is worth a line.
    late ||= setTimeout(() => { lost.hidden = false; }, 4000);
    // Closed for good, as by an answer that was no stream: the browser does not come back by itself.
    if (source.readyState === EventSource.CLOSED) { setTimeout(comeBack, pause); pause = Math.min(pause * 2, 30000); }
  };
}
async function comeBack() {
  // The page itself leads elsewhere once the session has ended: to the sign-in.
  const page = await fetch(location.pathname, { method: "HEAD", redirect: "manual" }).catch(() => null);
  if (page?.type === "opaqueredirect") location.reload(); else follow();
}
if (thread) follow();
// A browser keeps but a few connections to one server: pages that nobody looks at leave theirs to others.
if (thread) addEventListener("visibilitychange", () => { if (document.hidden) source.close(); else if (source.readyState === EventSource.CLOSED) follow(); });
document.getElementById("text")?.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); event.target.form.requestSubmit(); }
});
