// What the pages do by themselves: renew while something moves, send forms as JSON, show words and running clocks.
// Without this script every page can be read; to change something it is needed, because the API takes JSON only.
(() => {
  "use strict";

  const page = () => document.getElementById("page");
  const corner = document.getElementById("corner");
  const lost = document.getElementById("lost");

  // Forms: the same names and values, as JSON. A name that occurs twice becomes a list.
  document.addEventListener("htmx:before:request", (event) => {
    const request = event.detail.ctx.request;
    if (!/^(POST|PATCH|PUT|DELETE)$/i.test(request.method)) return;
    const values = {};
    const offered = [...event.target.querySelectorAll?.("[data-files]") ?? []];
    const carried = offered.filter((field) => field.files.length);
    const much = carried.map(tooMuch).find(Boolean);
    if (much) {
      event.preventDefault();
      say(much, true);
      return;
    }
    for (const field of offered) request.body?.delete(field.name);
    for (const [name, value] of request.body ? new URLSearchParams(request.body) : []) {
      values[name] = name in values ? [].concat(values[name], value) : value;
    }
    for (const field of event.target.querySelectorAll?.("[data-number]") ?? []) {
      if (field.name in values) values[field.name] = Number(values[field.name]);
    }
    // What must not happen twice carries a key that stays the same until it has happened.
    if (event.target.dataset?.once !== undefined) {
      event.target.dataset.key ??= [...crypto.getRandomValues(new Uint8Array(16))].map((n) => n.toString(16).padStart(2, "0")).join("");
      values[event.target.dataset.once || "key"] = event.target.dataset.key;
    }
    request.headers["Content-Type"] = "application/json";
    request.body = JSON.stringify(values);
    if (carried.length === 0) return;
    // Files are read when they are sent, so that they are what they are by then.
    event.detail.ctx.fetch = async (address, options) => {
      try {
        for (const field of carried) values[field.name] = await Promise.all([...field.files].map(packed));
      } catch {
        say("A file cannot be read any more. Choose it again.", true);
        throw new DOMException("a file cannot be read", "AbortError");
      }
      return fetch(address, { ...options, body: JSON.stringify(values) });
    };
  });
  const packed = (file) => new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve({ name: file.name, base64: reader.result.split(",")[1] ?? "" }));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
  // Said before anything is read: a film would fill the memory of this page.
  const tooMuch = ({ files, dataset }) => {
    const bytes = [...files].reduce((sum, file) => sum + file.size, 0);
    if (files.length > Number(dataset.files)) return `${files.length} files are chosen, and ${dataset.files} are the most.`;
    if (bytes > Number(dataset.bytes)) return `The files have ${Math.ceil(bytes / 1e6)} MB together, and ${Math.floor(Number(dataset.bytes) / 1e6)} MB are the most.`;
    return null;
  };

  // It has happened: the form is empty again.
  document.addEventListener("htmx:after:request", (event) => {
    const form = event.target;
    const reply = event.detail.ctx?.response;
    if (!(form instanceof HTMLFormElement) || !reply || reply.status >= 400) return;
    if (form.dataset.once === undefined && form.dataset.clears === undefined) return;
    delete form.dataset.key;
    form.reset();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches?.("[data-sends]")) {
      event.preventDefault();
      event.target.form.requestSubmit();
    }
  });

  // Words in the corner: what came of something a person did. A refusal stays until it is closed.
  const say = (text, refused) => {
    const line = document.createElement("p");
    line.className = refused ? "say refused" : "say";
    line.append(text);
    const close = document.createElement("button");
    close.type = "button";
    close.className = "close";
    close.setAttribute("aria-label", "Close");
    close.append("×");
    close.addEventListener("click", () => line.remove());
    line.append(close);
    corner.append(line);
    if (!refused) setTimeout(() => line.remove(), 6000);
    while (corner.children.length > 4) corner.firstElementChild.remove();
  };
  document.addEventListener("desk:said", (event) => say(event.detail.text, event.detail.refused));
  document.addEventListener("htmx:error", () => connected(false));

  // Renewing: one request at a time, and none sooner after another than that one took.
  let renewing = false;
  let again = false;
  const renew = async () => {
    if (renewing) {
      again = true;
      return;
    }
    renewing = true;
    const begun = performance.now();
    try {
      await htmx.ajax("GET", location.pathname + location.search, {
        target: "#page", select: "#page", swap: "outerMorph",
      });
    } finally {
      const took = performance.now() - begun;
      setTimeout(() => {
        renewing = false;
        if (again) {
          again = false;
          changed();
        }
      }, Math.max(300, took));
    }
  };
  const changed = () => document.body.dispatchEvent(new CustomEvent("desk:changed", { bubbles: true }));
  document.addEventListener("desk:changed", renew);

  // The stream: says that something moved. Browsers come back by themselves, with the number of the last line they have.
  let source = null;
  let from = null;
  const connected = (is) => {
    if (lost.hidden === is) return;
    lost.hidden = is;
    if (is) changed();
  };
  const listen = () => {
    const wanted = page()?.dataset.stream;
    if (!wanted || document.hidden) return;
    const kind = wanted.split("?")[0];
    if (source && source.readyState !== EventSource.CLOSED && from === kind) return;
    source?.close();
    from = kind;
    source = new EventSource(wanted);
    source.addEventListener("open", () => connected(true));
    source.addEventListener("message", (event) => { said(event.data); changed(); });
    source.addEventListener("live", (event) => hear(JSON.parse(event.data)));
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CONNECTING) connected(false);
      // Ended for good: its project is over, or the session is. The page says which.
      if (source.readyState === EventSource.CLOSED) setTimeout(() => { changed(); setTimeout(listen, 1500); }, 500);
    });
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      source?.close();
      source = null;
    } else {
      changed();
      listen();
    }
  });
  document.addEventListener("htmx:after:swap", () => { tick(); listen(); });

  // What an agent says while it says it: text until the message is in the trace, which is the whole of it.
  const live = new Map();
  const due = new Set();
  const whole = new Set();
  const shown = (text) => text.replace(/(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (c) => `⟦U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟧`);
  const draw = (run) => {
    const box = document.getElementById(`live-${run}`);
    const words = live.get(run);
    if (!box) return;
    box.hidden = !words;
    box.classList.toggle("thinks", Boolean(words) && !words.text);
    box.textContent = words ? shown(words.text) || "Thinks…" : "";
  };
  const hear = (piece) => {
    const length = [...piece.text].length;
    let words = live.get(piece.runId);
    if (piece.at === 0) whole.delete(piece.runId);
    if (piece.kind === "think.delta") {
      words ??= { text: "", at: 0 };
    } else if (!words || piece.at === 0) {
      words = { text: (piece.at ? "… " : "") + piece.text, at: piece.at + length };
    } else {
      if (piece.at < words.at) return; // heard already
      words.text += (piece.at > words.at ? " … " : "") + piece.text;
      words.at = piece.at + length;
    }
    live.set(piece.runId, words);
    if (!due.size) requestAnimationFrame(() => { due.forEach(draw); due.clear(); });
    due.add(piece.runId);
  };
  // A message has come whole: it takes the place of its pieces once the page shows it.
  const said = (line) => {
    if (!line.startsWith("{")) return;
    const { kind, runId } = JSON.parse(line);
    if (runId && /^(message|output|run\.)/.test(kind)) whole.add(runId);
  };
  document.addEventListener("htmx:after:swap", () => {
    for (const run of whole) {
      live.delete(run);
      draw(run);
    }
    whole.clear();
  });
  // Going away closes it, so that a page that is restored from memory begins anew.
  window.addEventListener("pagehide", () => { source?.close(); source = null; });
  window.addEventListener("pageshow", (event) => { if (event.persisted) { changed(); listen(); } });

  // Clocks: by the server's time, whatever this machine's says.
  let skew = null;
  const tick = () => {
    const stamp = Number(page()?.dataset.now);
    if (stamp && (skew === null || page().dataset.seen !== String(stamp))) {
      skew = Date.now() - stamp;
      page().dataset.seen = String(stamp);
    }
    const now = Date.now() - (skew ?? 0);
    for (const element of document.querySelectorAll("[data-until]")) {
      const left = Number(element.dataset.until) - now;
      element.textContent = left > 0 ? `${element.dataset.before ?? ""}${told(left)}` : element.dataset.over ?? "now";
    }
    for (const element of document.querySelectorAll("[data-since]")) {
      element.textContent = `${element.dataset.before ?? ""}${told(now - Number(element.dataset.since))}${element.dataset.after ?? ""}`;
    }
    for (const element of document.querySelectorAll("time[data-at]:not([title])")) {
      element.title = new Date(Number(element.dataset.at)).toLocaleString();
    }
  };
  const told = (ms) => {
    const s = Math.max(0, Math.floor(ms / 1000));
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")} min`;
    if (s < 86400) return `${Math.floor(s / 3600)}:${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} h`;
    return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
  };
  setInterval(tick, 1000);

  // Signing in: the code of a link stands behind #, which leaves this machine in no request.
  const entry = document.getElementById("login");
  if (entry) {
    const enter = async (code) => {
      const said = document.getElementById("login-said");
      said.textContent = "";
      try {
        const reply = await fetch("/api/studio/session", {
          method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }),
        });
        if (reply.ok) location.replace(entry.dataset.onward);
        else said.textContent = (await reply.json()).error;
      } catch {
        said.textContent = "The desk does not answer. Try again in a moment.";
      }
    };
    entry.addEventListener("submit", (event) => {
      event.preventDefault();
      enter(new FormData(entry).get("code").trim());
    });
    const carried = location.hash.slice(1);
    if (carried.startsWith("ofc_")) {
      history.replaceState(null, "", location.pathname + location.search);
      enter(carried);
    }
  }
  document.addEventListener("click", async (event) => {
    if (!event.target.closest?.("[data-logout]")) return;
    try {
      const reply = await fetch("/api/studio/session", { method: "DELETE" });
      if (!reply.ok && reply.status !== 401) throw new Error(String(reply.status));
      location.assign("/login");
    } catch {
      say("The desk does not answer: you are still signed in.", true);
    }
  });

  // A plan larger than its frame begins where something happens.
  for (const plan of document.querySelectorAll(".plan")) {
    const busy = plan.querySelector(".task.is-needs_input, .task.is-running, .task.is-failed") ?? plan.querySelector(".task");
    const frame = plan.getBoundingClientRect();
    const card = busy?.getBoundingClientRect();
    if (!card || frame.width === 0) continue;
    plan.scrollLeft = card.left - frame.left - (frame.width - card.width) / 2;
    plan.scrollTop = card.top - frame.top - (frame.height - card.height) / 2;
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-zoom]");
    if (!button) return;
    const whole = document.getElementById(`plan-${button.dataset.zoom}`).toggleAttribute("data-whole");
    button.setAttribute("aria-pressed", String(whole));
  });

  // Where one is stays in sight in a row of links that is wider than the screen.
  for (const row of document.querySelectorAll(".top nav, .tabs")) {
    const at = row.querySelector("[aria-current]");
    if (at) row.scrollLeft = at.offsetLeft - row.offsetLeft - (row.clientWidth - at.offsetWidth) / 2;
  }

  // A picture that is none: the words beside it are shown instead.
  const broken = (image) => image.closest(".picture")?.setAttribute("data-broken", "");
  document.addEventListener("error", (event) => {
    if (event.target instanceof HTMLImageElement) broken(event.target);
  }, true);
  for (const image of document.querySelectorAll(".picture img")) {
    if (image.complete && image.naturalWidth === 0) broken(image);
  }

  // Lists that can be narrowed down by a word.
  document.addEventListener("input", (event) => {
    const list = event.target.dataset?.narrows && document.getElementById(event.target.dataset.narrows);
    if (!list) return;
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const item of list.querySelectorAll("[data-item]")) {
      item.hidden = !words.every((word) => item.textContent.toLowerCase().includes(word));
      left += item.hidden ? 0 : 1;
    }
    for (const group of list.querySelectorAll("[data-group]")) {
      group.hidden = !group.querySelector("[data-item]:not([hidden])");
    }
    document.getElementById(`${list.id}-none`).hidden = left > 0;
  });

  tick();
  listen();
})();
