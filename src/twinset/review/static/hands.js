// Keys and swipes, and what they do to the task that is shown.

import { $, zoom } from "./view.js";

const SWIPE = 60; // px

// task: what is shown, or null. choose: called with an option. undo: called without arguments.
export function listen({ task, choose, undo }) {
  addEventListener("keydown", (event) => onKey(event, task(), choose, undo));
  const swipe = swipes(task, choose);
  for (const name of ["touchstart", "touchmove", "touchend", "touchcancel"]) $("task").addEventListener(name, swipe, { passive: true });
  const leaf = zoomSwipes(task);
  for (const name of ["touchstart", "touchend"]) $("zoom").addEventListener(name, leaf, { passive: true });
  $("zoomed").onclick = () => $("zoom").close();
  $("undo").onclick = undo;
  $("ask-help").onclick = () => $("help").showModal();
  for (const button of document.querySelectorAll("[data-close]")) button.onclick = () => button.closest("dialog").close();
  $("single").checked = localStorage["twinset-single-keys"] !== "off";
  $("single").onchange = () => (localStorage["twinset-single-keys"] = $("single").checked ? "on" : "off");
}

function onKey(event, task, choose, undo) {
  const { key, code } = event;
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
  if (key !== "Backspace" && !$("single").checked) return;
  const digit = /^\d$/.test(key) ? key : code?.match(/^Digit(\d)$/)?.[1]; // also where digits need Shift
  if (event.repeat && (digit || key === "Backspace")) return event.preventDefault(); // a key that is held down
  if (act(key, digit, document.querySelector("dialog[open]")?.id, task, choose, undo)) event.preventDefault();
}

// Whether the key did something.
function act(key, digit, open, task, choose, undo) {
  if (key === "?") return open ? $(open).close() : $("help").showModal(), true;
  if (open === "help") return false;
  if (key === "Backspace") return open ? $(open).close() : undo(), true;
  if (open === "why") return digit ? ($("reasons").children[digit - 1]?.click(), true) : false;
  if (!task) return false;
  if (key === "z") return zoom(task, open ? undefined : 0, 1), true;
  if (open && key.startsWith("Arrow")) return zoom(task, undefined, key === "ArrowLeft" || key === "ArrowUp" ? -1 : 1), true;
  const option = [...task.options, ...task.extra].find((one) => one.key === digit);
  return option ? (choose(option), true) : false;
}

// The option that a movement means. Of two: left and right. Of one: right, and left is the extra. Up: the extra.
function aimed({ options, extra, ranked }, x, y) {
  if (ranked) return undefined;
  if (y < -SWIPE && -y > 2 * Math.abs(x)) return extra[0];
  if (Math.abs(x) < SWIPE || Math.abs(x) < 2 * Math.abs(y) || options.length > 2) return undefined;
  if (options.length === 2) return options[x < 0 ? 0 : 1];
  return x < 0 ? extra[0] : options[0];
}

function swipes(task, choose) {
  let start = null;
  return (event) => {
    const now = task();
    const point = event.changedTouches[0];
    if (event.type === "touchstart") {
      const single = event.touches.length === 1 && visualViewport.scale < 1.05; // else a pinch, or a look around after it
      start = single && now ? { task: now, x: point.clientX, y: point.clientY, scroll: scrollY } : null;
    }
    if (!start || now !== start.task) return;
    const target = scrollY === start.scroll ? aimed(now, point.clientX - start.x, point.clientY - start.y) : undefined; // not scrolled
    const moving = event.type === "touchmove";
    for (const option of [...now.options, ...now.extra]) option.button.classList.toggle("aimed", moving && option === target);
    if (event.type === "touchend" && target) choose(target);
    if (event.type === "touchend" || event.type === "touchcancel") start = null;
  };
}

function zoomSwipes(task) {
  let start = null;
  return (event) => {
    if (event.type === "touchstart") start = event.touches.length === 1 ? event.touches[0].clientX : null;
    else if (start !== null && visualViewport.scale < 1.05) {
      const x = event.changedTouches[0].clientX - start;
      if (Math.abs(x) > SWIPE) zoom(task(), undefined, x < 0 ? 1 : -1);
    }
  };
}
