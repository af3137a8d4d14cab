// How large the images of a task are: as large as the window lets them be, without scrolling.

import { $ } from "./view.js";

const SMALLEST = 80; // px: then the page scrolls
const ROOMY = 900; // px of a window: in a narrower one, wide images lie one below the other
const TALLEST = 1.6; // height by width of a cell: a taller image is shown smaller

// Choose how many images lie side by side and whether buttons lie beside or below them, so that they are largest.
export function fit() {
  const task = $("task");
  const figures = [...task.querySelectorAll(".pictures > figure")];
  if (!figures.length) return;
  const options = $("options").contains(figures[0]);
  const most = figures.length;
  // Two options lie left and right, as their swipes go; twins are compared side by side where there is room.
  const least = options || innerWidth >= ROOMY ? Math.min(2, most) : 1;
  let best = null;
  for (let columns = least; columns <= most; columns += 1)
    for (const beside of options ? [false, true] : [false]) {
      const found = measured(task, figures, columns, beside);
      if (!best || found.size > best.size) best = found;
    }
  lay(task, best);
}

function lay(task, { columns, beside, tall }) {
  task.style.setProperty("--columns", columns);
  task.style.setProperty("--tall", `${tall}px`);
  task.classList.toggle("beside", beside);
}

// The height that images can have in an arrangement, and the width (px) at which the tallest of them is then shown.
function measured(task, figures, columns, beside) {
  lay(task, { columns, beside, tall: SMALLEST });
  const rows = Math.ceil(figures.length / columns);
  const wide = figures[0].querySelector(".zoomer").clientWidth;
  const shapes = figures.map((figure) => figure.querySelector("img")).map((image) => image.naturalHeight / image.naturalWidth || 1);
  const shape = Math.min(Math.max(...shapes), TALLEST);
  const tall = Math.max(Math.min(SMALLEST + Math.floor(space(task) / rows), Math.ceil(wide * shape)), SMALLEST);
  return { columns, beside, tall, size: Math.min(wide, tall / shape) };
}

// What is left of the window below the task (px); open instructions above it, which can be closed, do not count.
function space(task) {
  const guide = $("guide");
  const above = guide.open && guide.offsetTop + guide.offsetHeight <= task.offsetTop ? $("guide-words").offsetHeight : 0;
  const { rowGap, paddingTop, paddingBottom } = getComputedStyle(task);
  const heights = [...task.children].map((part) => part.offsetHeight + parseFloat(rowGap));
  const needed = heights.reduce((sum, height) => sum + height, parseFloat(paddingTop) + parseFloat(paddingBottom) - parseFloat(rowGap));
  return innerHeight - (task.offsetTop - above) - needed;
}
