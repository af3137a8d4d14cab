// The review page. It shows one task at a time, preloads the images of the next ones, and keeps an answer in the
// browser's storage until the server has confirmed it.

import { ask, Trouble, UNSENT } from "./server.js";
import { fit } from "./fitting.js";
import { listen } from "./hands.js";
import { $, announce, chooser, drawOrder, drawTask, drawWords, make, note, prepare } from "./view.js";

const AHEAD = 3; // tasks that are loaded beside the one shown
const GUARD = 150; // ms after a task appears before it takes an answer: else a double press would answer two tasks
const [SHORTEST_PAUSE, LONGEST_PAUSE] = [0.5, 15]; // s between two attempts to reach the server

let queue = []; // tasks that wait; the first is the one shown
let progress = null; // {done, total, per_hour, minutes} as the server counted last
let rest = null; // {progress, held}: what others have of what is left, once the server has nothing to give
let exhausted = false; // the server has nothing beyond the queue
let answeredMeanwhile = new Set(); // ids answered while a list of tasks was under way: that list may still hold them
let undos = 0; // undos that the server has not confirmed
let undoUnsure = false; // the reply to an undo was lost
let shown; // the task on the page; null: none is left
let loaded = false; // whether all images of the shown task are there
let open = false; // whether the shown task takes an answer: its images are there, and the guard is over
let seconds = 0; // that the shown task was visible with all its images, before it was last hidden
let visibleSince = null; // null: the images are not there yet, or the window is hidden
const skipped = new Set(); // ids of tasks whose images did not load
const outbox = Object.keys(localStorage).filter((key) => key.startsWith(UNSENT)).map((key) => JSON.parse(localStorage[key]));

let working = false;
let wake = () => {};

// One request at a time, in order: answers, then undos, then more tasks. What fails is repeated; an answer is safe to
// repeat, since the server keeps one a task.
async function work() {
  if (working) return;
  working = true;
  for (let pause = SHORTEST_PAUSE; ; ) {
    try {
      if (outbox.length) await sendAnswer();
      else if (undos) await undoAnswer();
      else if (queue.length <= AHEAD && !exhausted) await fetchTasks();
      else if (!queue.length && !rest) await fetchRest();
      else break;
      pause = SHORTEST_PAUSE;
      $("trouble").hidden = true;
    } catch (trouble) {
      if (!(trouble instanceof Trouble)) throw trouble;
      const kept = outbox.length ? ` Not sent yet, but kept in this browser: ${outbox.length}.` : "";
      complain(trouble.message + kept);
      if (trouble.kind === "closed") break;
      await new Promise((resolve) => setTimeout((wake = resolve), 1000 * (trouble.pause ?? pause)));
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    }
    show();
  }
  working = false;
}

function complain(words) {
  if ($("trouble-words").textContent !== words) $("trouble-words").textContent = words; // else it is read out each time
  $("trouble").hidden = false;
}

async function sendAnswer() {
  const answer = outbox[0];
  try {
    progress = (await ask("/api/answer", answer)).progress;
  } catch (trouble) {
    if (trouble.kind !== "refused") throw trouble;
    note(`An answer could not be saved: ${trouble.message}`);
    queue = []; // the server asks something else by now
  }
  outbox.shift();
  localStorage.removeItem(UNSENT + answer.id);
  exhausted = false;
}

const nextTasks = () => ask(`/api/next?after=${AHEAD + skipped.size}`);

async function fetchTasks() {
  [answeredMeanwhile, rest] = [new Set(), null];
  exhausted = !take(await nextTasks());
}

async function fetchRest() {
  rest = await ask("/api/rest");
  progress = rest.progress;
}

function take(tasks) {
  const known = new Set([...queue.map((task) => task.id), ...skipped, ...answeredMeanwhile]);
  const fresh = tasks.filter((task) => !known.has(task.id));
  for (const task of fresh) prepare(task);
  queue.push(...fresh);
  if (tasks.length) progress = tasks[0].progress;
  return fresh.length;
}

// An undo is not safe to repeat: after a lost reply, the server's count tells whether it took place.
async function undoAnswer() {
  if (undoUnsure) {
    const tasks = await nextTasks();
    undoUnsure = false;
    if (tasks.length && (!progress || tasks[0].progress.done < progress.done)) {
      undos -= 1;
      [queue, answeredMeanwhile] = [[], new Set()];
      return take(tasks);
    }
  }
  let task = null;
  try {
    task = (await ask("/api/undo", {})).task;
  } catch (trouble) {
    if (trouble.kind !== "refused") {
      undoUnsure = true;
      throw trouble;
    }
  }
  undos -= 1;
  if (!task) return note("There is nothing to undo.");
  skipped.delete(task.id);
  answeredMeanwhile.delete(task.id);
  queue = [prepare(task), ...queue.filter((other) => other.id !== task.id)];
  progress = task.progress;
}

function show() {
  const task = queue[0] ?? null;
  const same = task && task === shown;
  shown = task;
  showPace();
  if (same) return;
  const hadFocus = $("task").contains(document.activeElement);
  [open, loaded, seconds, visibleSince] = [false, false, 0, null];
  delete $("task").dataset.open;
  for (const dialog of document.querySelectorAll("dialog[open]")) if (dialog.id !== "help") dialog.close();
  $("task").dataset.id = task?.id ?? "";
  $("task").ariaBusy = "true";
  if (!task) return showEnd();
  drawTask(task, choose);
  fit();
  if (hadFocus) $("title").focus({ preventScroll: true });
  scrollTo(0, 0);
  Promise.all(task.pictures.map((each) => each.loaded)).then((successes) => {
    if (shown !== task) return;
    if (!successes.every(Boolean)) return showBroken(task);
    fit();
    $("task").ariaBusy = "false";
    loaded = true;
    visibleSince = document.hidden ? null : performance.now();
    setTimeout(() => {
      if (shown === task) $("task").dataset.open = open = true;
    }, GUARD);
  });
}

function choose(option) {
  const task = shown;
  if (!task || undos || !open) return;
  if (task.ranked) return task.extra.includes(option) ? saveOrder(task) : place(task, option);
  const reasons = Object.entries(task.extra.includes(option) ? task.reasons : {});
  if (!reasons.length) return answer(task, option);
  const buttons = reasons.map(([code, words], n) => chooser(String(n + 1), words, "", () => answer(task, option, code)));
  $("reasons").replaceChildren(...buttons);
  $("why").showModal();
}

// Give an option the next place, or take its place away.
function place(task, option) {
  task.order = task.order.includes(option) ? task.order.filter((other) => other !== option) : [...task.order, option];
  drawOrder(task);
}

function saveOrder(task) {
  if (task.order.length) answer(task, { value: task.order.map((option) => option.value).join(" ") });
}

function answer(task, option, reason) {
  const spent = seconds + (visibleSince === null ? 0 : (performance.now() - visibleSince) / 1000);
  const body = { id: task.id, option: option.value, seconds: Math.round(spent * 1000) / 1000, ...(reason && { reason }) };
  localStorage[UNSENT + task.id] = JSON.stringify(body);
  outbox.push(body);
  answeredMeanwhile.add(task.id);
  queue.shift();
  note("");
  show();
  work();
}

function undo() {
  if (shown?.order?.length) return place(shown, shown.order.at(-1));
  if (undos) return;
  undos += 1;
  exhausted = false;
  work();
}

function showBroken(task) {
  const again = () => {
    shown = undefined;
    prepare(task);
    show();
  };
  const skip = () => {
    skipped.add(task.id);
    queue.shift();
    show();
    work();
  };
  $("statement").prepend(
    make("p", { className: "notice" }, "An image of this task did not load. ",
      make("button", { type: "button", onclick: again }, "Try again"), " ",
      make("button", { type: "button", onclick: skip }, "Skip this task")),
  );
  announce("An image of this task did not load.");
}

function showEnd() {
  if (!exhausted || !rest || outbox.length || undos) return drawWords("Loading the next task …");
  const skips = skipped.size ? `Tasks skipped because an image did not load: ${skipped.size}. Reload the page to see them again. ` : "";
  const look = () => {
    exhausted = false;
    show();
    work();
  };
  const more = make("button", { type: "button", onclick: look }, "Look for more tasks");
  const done = rest.code && completion(rest.code);
  const title = rest.held ? "Nothing is left for you now. Thank you!" : "Nothing is left to do. Thank you!";
  const held = rest.held ? elsewhere(rest.held) : "";
  drawWords(title, done, held && make("p", {}, held), make("p", {}, `${skips}You can still undo your last answers.`), make("p", {}, more));
  announce(`${title} ${held}`);
}

// What a participant of a study takes back to Prolific.
function completion(code) {
  const href = `https://app.prolific.com/submissions/complete?cc=${encodeURIComponent(code)}`;
  return make("p", {}, "Your completion code is ", make("strong", {}, code), ". ", make("a", { href }, "Return to Prolific"));
}

const many = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

const elsewhere = ({ tasks, minutes }) =>
  `${many(tasks, "task")} ${tasks === 1 ? "is" : "are"} with others now. ` +
  `What they have not answered in ${many(minutes, "minute")} comes to you.`;

function showPace() {
  $("undo").disabled = !progress?.done && !outbox.length && !exhausted;
  if (!progress) return;
  const done = Math.min(progress.done + outbox.length, progress.total);
  Object.assign($("bar"), { value: done, max: progress.total || 1 });
  const { minutes, per_hour: rate } = progress;
  const left = minutes < 60 ? `${Math.ceil(minutes)} min` : `${(minutes / 60).toFixed(1)} h`;
  $("pace").replaceChildren(
    `${done} of ${progress.total}`,
    make("span", { className: "rate" }, shown && rate ? ` · ${rate} an hour` : ""),
    shown && minutes && done < progress.total ? ` · ${left} left` : "",
  );
}

listen({ task: () => shown, choose, undo });
$("now").onclick = () => wake();
addEventListener("online", () => wake());
document.addEventListener("visibilitychange", () => {
  if (!loaded) return;
  if (document.hidden && visibleSince !== null) seconds += (performance.now() - visibleSince) / 1000;
  visibleSince = document.hidden ? null : performance.now();
});
$("guide").open = matchMedia("(min-width: 1100px)").matches;
addEventListener("resize", fit);
$("guide").addEventListener("toggle", fit);
work();
