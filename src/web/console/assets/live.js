// Follows a conversation: each event brings a whole entry, so that one told twice changes nothing.
"use strict";
const thread = document.querySelector("#thread[data-live]");
if (thread) {
  const lost = document.getElementById("lost"), announce = document.getElementById("announce");
  let after = thread.dataset.after, pause = 500, late = 0;
  const parse = (html) => { const box = document.createElement("template"); box.innerHTML = html; return box.content.firstElementChild; };
  const opened = (at) => [...at.querySelectorAll("details")].map((one) => one.open);
  const answers = (at) => [...at.querySelectorAll(".ours:not(.partial) .spoken")].map((one) => one.textContent);
  function place(next, old) {
    if (old) return old.replaceWith(next);
    const entries = [...thread.children], at = Number(next.dataset.at);
    // An entry from before this page begins belongs to an older page.
    if (entries.length && at < Number(entries[0].dataset.at)) return;
    thread.insertBefore(next, entries.find((one) => Number(one.dataset.at) > at) || null);
    document.getElementById("empty")?.remove();
  }
  function show(event) {
    const next = parse(event.data), old = document.getElementById(next.id);
    const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
    if (old) {
      const was = opened(old);
      next.querySelectorAll("details").forEach((one, place) => { one.open = was[place] || false; });
    }
    const held = old?.contains(document.activeElement) ? [...old.querySelectorAll("a,button,summary")].indexOf(document.activeElement) : -1;
    place(next, old);
    if (held >= 0) next.querySelectorAll("a,button,summary")[held]?.focus({ preventScroll: true });
    const said = answers(next);
    if (said.length > (old ? answers(old).length : 0)) announce.textContent = said[said.length - 1];
    if (atEnd) scrollTo(0, document.documentElement.scrollHeight);
    if (event.lastEventId) after = event.lastEventId;
  }
  function follow() {
    const source = new EventSource(thread.dataset.live + "?after=" + after);
    source.onopen = () => { clearTimeout(late); lost.hidden = true; pause = 500; };
    source.addEventListener("turn", show);
    source.addEventListener("head", show);
    source.addEventListener("reset", () => { source.close(); location.reload(); });
    source.onerror = () => {
      // A stream that ends by itself is back in a moment; only what lasts is worth a line.
      clearTimeout(late);
      late = setTimeout(() => { lost.hidden = false; }, 4000);
      // Closed for good, as by an answer that was no stream: the browser does not come back by itself.
      if (source.readyState === EventSource.CLOSED) { setTimeout(follow, pause); pause = Math.min(pause * 2, 30000); }
    };
  }
  follow();
}
document.getElementById("text")?.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); event.target.form.requestSubmit(); }
});
