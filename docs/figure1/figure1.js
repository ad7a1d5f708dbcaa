// Figure 1, to be moved by hand: a word chooses one of three heads, and a gradient asks for another choice.
// In node the functions below are exported for the tests; in a page every element of class "figure1-live" comes alive.
"use strict";
(() => {
  const CORNERS = [[190, 60], [70, 268], [310, 268]];

  /** Nearest point of the probability simplex, by sorting. */
  function projectSimplex(point) {
    const sorted = [...point].sort((a, b) => b - a);
    let sum = 0, threshold = 0;
    sorted.forEach((value, index) => {
      sum += value;
      const candidate = (sum - 1) / (index + 1);
      if (value > candidate) threshold = candidate;
    });
    return point.map((value) => Math.max(value - threshold, 0));
  }

  /** What both estimators do with a gradient at a corner: the step, the projection, and what each sends back. */
  function explain(corner, gradient, eta) {
    const z = [0, 1, 2].map((k) => (k === corner ? 1 : 0));
    const stepped = z.map((value, k) => value - eta * gradient[k]);
    const projected = projectSimplex(stepped);
    return {
      z, stepped, projected,
      straight: gradient.map((value) => eta * value),
      spigot: z.map((value, k) => value - projected[k]),
    };
  }

  /** A point of the plane through the triangle, from three numbers that sum to 1. */
  function pixels(weights) {
    return [0, 1].map((axis) => weights.reduce((sum, w, k) => sum + w * CORNERS[k][axis], 0));
  }

  /** The three numbers that sum to 1, from a point of the plane. */
  function weights([x, y]) {
    const [[ax, ay], [bx, by], [cx, cy]] = CORNERS;
    const area = (by - cy) * (ax - cx) + (cx - bx) * (ay - cy);
    const a = ((by - cy) * (x - cx) + (cx - bx) * (y - cy)) / area;
    const b = ((cy - ay) * (x - cx) + (ax - cx) * (y - cy)) / area;
    return [a, b, 1 - a - b];
  }

  if (typeof module !== "undefined" && module.exports) {
    module.exports = { projectSimplex, explain, pixels, weights };
    return;
  }

  const number = (value) => (Math.abs(value) < 0.005 ? 0 : value).toFixed(2).replace("-", "−");
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  function line(element, from, to, short = 0) {
    const length = Math.hypot(to[0] - from[0], to[1] - from[1]);
    const share = length > short ? (length - short) / length : 0;
    const end = from.map((value, axis) => value + share * (to[axis] - value));
    element.setAttribute("d", `M${from[0].toFixed(1)} ${from[1].toFixed(1)}L${end[0].toFixed(1)} ${end[1].toFixed(1)}`);
    element.style.visibility = length > 3 ? "" : "hidden";
  }

  function place(element, at) {
    element.setAttribute("transform", `translate(${at[0].toFixed(1)} ${at[1].toFixed(1)})`);
  }

  function start(figure) {
    if (figure.dataset.started) return;
    figure.dataset.started = "yes";
    const all = (name) => figure.querySelectorAll(`[data-part="${name}"]`);
    const heads = JSON.parse(figure.dataset.heads);
    const state = { corner: 1, gradient: JSON.parse(figure.dataset.gradient), eta: 1 };
    figure.querySelectorAll(".live-only").forEach((element) => element.removeAttribute("hidden"));

    function draw() {
      const found = explain(state.corner, state.gradient, state.eta);
      const z = pixels(found.z), p = pixels(found.stepped), back = pixels(found.projected);
      const wanted = pixels(found.z.map((value, k) => value - state.gradient[k]));
      const far = Math.hypot(p[0] - back[0], p[1] - back[1]);
      all("wish").forEach((element) => line(element, z, wanted));
      all("handle").forEach((element) => {
        place(element, wanted);
        element.setAttribute("aria-valuetext", `gradient ${state.gradient.map(number).join(", ")}`);
      });
      all("z").forEach((element) => place(element, z));
      all("p").forEach((element) => place(element, p));
      all("projected").forEach((element) => place(element, back));
      all("straight-arrow").forEach((element) => line(element, z, p, 7));
      all("step").forEach((element) => line(element, z, p));
      all("back").forEach((element) => line(element, p, back));
      all("spigot-arrow").forEach((element) => line(element, z, back, 7));
      all("projected-name").forEach((element) => {
        // On the side that the dashed line does not come from.
        element.setAttribute("x", (far > 1 ? (20 * (back[0] - p[0])) / far : 0).toFixed(1));
        element.setAttribute("y", ((far > 1 ? (20 * (back[1] - p[1])) / far : 20) + 6).toFixed(1));
      });
      all("p-name").forEach((element) => { element.style.visibility = far > 14 ? "" : "hidden"; });
      all("corner").forEach((element) => {
        const chosen = Number(element.dataset.corner) === state.corner;
        element.setAttribute("aria-pressed", String(chosen));
      });
      for (const [name, values] of Object.entries({
        z: found.z, gradient: state.gradient, stepped: found.stepped, projected: found.projected,
        straight: found.straight, spigot: found.spigot,
      })) {
        values.forEach((value, k) => {
          figure.querySelectorAll(`[data-number="${name}-${k}"]`).forEach((cell) => {
            cell.textContent = number(value);
            cell.classList.toggle("negative", value < -0.005);
          });
        });
      }
      all("eta-value").forEach((element) => { element.textContent = number(state.eta); });
      all("says").forEach((element) => { element.textContent = say(found, far); });
    }

    function say(found, far) {
      const moved = Math.max(...found.spigot.map(Math.abs));
      const best = found.projected.indexOf(Math.max(...found.projected));
      if (moved < 0.005) {
        return Math.max(...found.straight.map(Math.abs)) < 0.005
          ? "No gradient, no step: both send back nothing."
          : `The step points away from the triangle: “${heads[state.corner]}” is as good as it gets. SPIGOT sends back ` +
            "nothing, STE goes on pushing.";
      }
      if (far < 1) return "The step ends inside the triangle: nothing to project, and both send back the same.";
      const flipped = found.projected[best] > 0.995 && best !== state.corner;
      return "The step leaves the triangle: some heads would count less than zero or more than once. SPIGOT takes the " +
        `nearest point inside${flipped ? `, here the corner “${heads[best]}”` : ""}; STE keeps what lies outside.`;
    }

    function drag(point) {
      const kept = [clamp(point[0], 14, 366), clamp(point[1], 16, 316)];
      const z = [0, 1, 2].map((k) => (k === state.corner ? 1 : 0));
      state.gradient = weights(kept).map((value, k) => z[k] - value);
      draw();
    }

    all("handle").forEach((handle) => {
      const panel = handle.ownerSVGElement;
      const at = (event) => {
        const matrix = panel.getScreenCTM();
        const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
        return [point.x, point.y];
      };
      handle.addEventListener("pointerdown", (event) => {
        handle.setPointerCapture(event.pointerId);
        handle.focus({ preventScroll: true });
        event.preventDefault();
      });
      handle.addEventListener("pointermove", (event) => {
        if (handle.hasPointerCapture(event.pointerId)) drag(at(event));
      });
      handle.addEventListener("keydown", (event) => {
        const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
        if (!move) return;
        event.preventDefault();
        const z = [0, 1, 2].map((k) => (k === state.corner ? 1 : 0));
        const now = pixels(z.map((value, k) => value - state.gradient[k]));
        const size = event.shiftKey ? 20 : 5;
        drag([now[0] + size * move[0], now[1] + size * move[1]]);
      });
    });
    all("corner").forEach((element) => {
      const choose = () => { state.corner = Number(element.dataset.corner); draw(); };
      element.addEventListener("click", choose);
      element.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); }
      });
    });
    all("eta").forEach((slider) => slider.addEventListener("input", () => {
      state.eta = Number(slider.value);
      draw();
    }));
    draw();
  }

  const begin = () => document.querySelectorAll(".figure1-live").forEach(start);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
