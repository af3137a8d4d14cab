// How a task is drawn. Nothing here knows a kind of question: a task's JSON says what is shown and what can be chosen.

const IMAGE_ATTEMPTS = 8; // over 13 s: as long as a server may take to start again

export const $ = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children.filter((child) => child));
  return node;
}

// Begin to load the images of a task: its `pictures` in the order shown, and the `picture` of each option.
export function prepare(task) {
  const many = task.statement.images.length > 1;
  task.pictures = task.statement.images.map((url, n) => picture(url, many ? `Image ${n + 1}` : "Image"));
  for (const [n, option] of task.options.entries()) {
    option.key = task.ranked ? "" : String(n + 1); // many, and their buttons narrow
    option.name = task.options.length > 1 ? `${option.label} ${n + 1}` : option.label;
    if (option.image) task.pictures.push((option.picture = picture(option.image, option.name)));
  }
  // Of a task whose options are put in order, those that have a place; the extra option saves them.
  if (task.ranked) [task.order, task.extra] = [[], [{ value: "", label: "Save this order", key: "0" }]];
  return task;
}

// Show which place each option of a task has.
export function drawOrder({ options, order, extra }) {
  for (const option of options) {
    const place = order.indexOf(option) + 1;
    option.button.setAttribute("aria-pressed", place > 0);
    option.button.querySelector("span").textContent = place ? `Place ${place}` : option.name;
    option.button.ariaLabel = place ? `${option.name}: Place ${place}` : option.name;
  }
  extra[0].button.disabled = !order.length;
  const left = options.length - order.length;
  extra[0].button.querySelector("span").textContent = order.length ? `Save: ${order.length} in order, ${left} behind` : extra[0].label;
}

function picture(url, name) {
  const image = make("img", { alt: name, draggable: false });
  let attempts = 0;
  const loaded = new Promise((resolve) => {
    image.onload = () => {
      image.style.setProperty("--ratio", image.naturalWidth / image.naturalHeight);
      image.decode().catch(() => {}).then(() => resolve(true));
    };
    image.onerror = () => {
      attempts += 1;
      if (attempts === IMAGE_ATTEMPTS) resolve(false);
      else setTimeout(() => (image.src = url), 50 * 2 ** attempts);
    };
  });
  image.src = url;
  return { url, name, image, loaded };
}

// choose: called with the option that a person takes. Each option gets its `button`.
export function drawTask(task, choose) {
  const { statement, options, extra } = task;
  $("title").textContent = task.title;
  $("statement").replaceChildren(...drawnStatement(task));
  $("options").replaceChildren(...options.map((option, n) => drawnOption(task, option, n, choose)));
  $("extra").replaceChildren(...extra.map((option) => (option.button = chooser(option.key, option.label, upArrow(task), () => choose(option)))));
  $("answers").dataset.options = options.length;
  $("options").classList.toggle("pictures", options.some((option) => option.picture));
  // A single option comes last, as it lies: the order of the keys 0 and 1, of the swipes, and of Tab.
  $("answers").append(...(options.length === 1 ? [$("extra"), $("options")] : [$("options"), $("extra")]));
  if (task.ranked) drawOrder(task);
  drawGuide(task);
  const said = [...options, ...extra].map((option) => `${option.key}: ${option.text ?? option.name ?? option.label}.`);
  announce([task.title, ...statement.texts, "Options:", ...said].join(" "));
}

export function drawWords(title, ...below) {
  $("title").textContent = title;
  $("statement").replaceChildren(...below.filter(Boolean));
  $("options").replaceChildren();
  $("extra").replaceChildren();
}

// Captions that belong to images lie above them, and what differs between two of them is marked.
function drawnStatement(task) {
  const { texts, images } = task.statement;
  const paired = texts.length === images.length && texts.length > 1;
  const captions = paired && texts.length === 2 ? [marked(texts[0], texts[1]), marked(texts[1], texts[0])] : texts.map((text) => [text]);
  const figures = images.map((_, n) => make("figure", {}, paired && make("figcaption", {}, ...captions[n]), zoomer(task, task.pictures[n])));
  const quotes = paired ? [] : captions.map((caption) => make("blockquote", {}, ...caption));
  return figures.length ? [...quotes, make("div", { className: paired ? "pictures captioned" : "pictures" }, ...figures)] : quotes;
}

// The words of a text, those in <mark> that are not in the longest common subsequence with another text.
export function marked(text, other) {
  const [words, others] = [text.split(" "), other.split(" ")];
  const longest = Array.from({ length: words.length + 1 }, () => new Array(others.length + 1).fill(0)); // of the rests
  for (let i = words.length - 1; i >= 0; i -= 1)
    for (let j = others.length - 1; j >= 0; j -= 1)
      longest[i][j] = words[i] === others[j] ? 1 + longest[i + 1][j + 1] : Math.max(longest[i + 1][j], longest[i][j + 1]);
  const runs = []; // [differs, words]
  for (let i = 0, j = 0; i < words.length; ) {
    const common = words[i] === others[j] && j < others.length;
    if (!common && j < others.length && longest[i][j + 1] >= longest[i + 1][j]) j += 1;
    else {
      if (runs.at(-1)?.[0] === !common) runs.at(-1)[1].push(words[i]);
      else runs.push([!common, [words[i]]]);
      [i, j] = [i + 1, common ? j + 1 : j];
    }
  }
  const parts = runs.map(([differs, run]) => (differs ? make("mark", {}, run.join(" ")) : run.join(" ")));
  return parts.flatMap((part, n) => (n ? [" ", part] : [part]));
}

function drawnOption(task, option, n, choose) {
  const arrow = task.options.length === 2 ? "←→"[n] : task.options.length === 1 ? "→" : "";
  const words = option.picture ? option.name : (option.text ?? option.name);
  option.button = chooser(option.key, words, arrow, () => choose(option));
  if (!option.picture) return option.button;
  return make("figure", {}, zoomer(task, option.picture), option.text && make("p", {}, option.text), option.button);
}

const upArrow = (task) => (task.ranked ? "" : task.options.length === 1 ? "←" : "↑");

// A button with its key and, for touch screens, the direction of its swipe.
export function chooser(key, words, arrow, onclick) {
  const labels = [make("kbd", {}, key), make("i", { ariaHidden: "true" }, arrow), make("span", {}, words)];
  return make("button", { type: "button", className: "choose", onclick }, ...labels);
}

function zoomer(task, one) {
  const onclick = () => zoom(task, task.pictures.indexOf(one));
  return make("button", { type: "button", className: "zoomer", ariaLabel: `Enlarge ${one.name}`, onclick }, one.image);
}

let zoomed = 0;

// Show the n-th image of a task as large as the window; without n, the one `step` further than the one that is shown.
export function zoom(task, n, step = 0) {
  const count = task.pictures.length;
  if (!count) return;
  zoomed = ((n ?? zoomed + step) + count) % count;
  const { url, name } = task.pictures[zoomed];
  Object.assign($("zoomed"), { src: url, alt: name });
  $("zoomed-words").textContent = name;
  if (!$("zoom").open) $("zoom").showModal();
}

function drawGuide(task) {
  if ($("guide").dataset.block === task.block) return;
  Object.assign($("guide").dataset, { block: task.block, question: task.question });
  $("guide-title").textContent = task.part ? `Instructions, ${task.part}` : "Instructions";
  if (task.part) $("guide").open = true; // what is asked changes with the part
  const example = ({ text, answer, why }) =>
    make("li", {}, make("span", {}, text), make("strong", {}, answer), make("em", {}, why));
  $("guide-words").replaceChildren(
    make("ol", {}, ...task.instructions.map((line) => make("li", {}, line))),
    make("ul", { className: "examples" }, ...task.examples.map(example)),
  );
}

// Said by screen readers.
export function announce(words) {
  $("live").textContent = words;
}

// A short message at the foot of the page, until the next answer.
export function note(words) {
  $("note").textContent = words;
}
