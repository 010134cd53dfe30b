"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const data = (name) => {
    const holder = document.getElementById(`data-${name}`);
    return holder && JSON.parse(holder.textContent);
  };

  // One tip for everything that has more to say. Its text comes from data and is never read as HTML.
  const tip = document.getElementById("tip");
  const element = (name, text) => Object.assign(document.createElement(name), { textContent: text });
  const showTip = (content, x, y) => {
    tip.replaceChildren(...content);
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = x + 16 + width > innerWidth ? x - 16 - width : x + 16;
    const top = y + 16 + height > innerHeight ? y - 16 - height : y + 16;
    tip.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
    tip.style.top = `${Math.max(8, top)}px`;
  };
  const hideTip = () => { tip.hidden = true; };
  document.addEventListener("pointerover", (event) => {
    const told = event.target.closest("[data-tip]");
    if (told) showTip([element("span", told.dataset.tip)], event.clientX, event.clientY);
    else if (!event.target.closest("#signature-map svg, #similarity-matrix svg")) hideTip();
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
  addEventListener("scroll", hideTip, { passive: true });

  // Tables sort by the column that is clicked: numbers from the largest, text from A.
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.sort ?? cell.textContent.trim();
  };
  const sortTable = (table, header) => {
    const column = header.cellIndex;
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const numeric = rows.every((row) => keyOf(row, column) !== "" && !Number.isNaN(Number(keyOf(row, column))));
    const was = header.getAttribute("aria-sort");
    const up = was ? was === "descending" : !numeric || column === 0;
    const sign = up ? 1 : -1;
    const compare = numeric
      ? (a, b) => Number(keyOf(a, column)) - Number(keyOf(b, column))
      : (a, b) => keyOf(a, column).localeCompare(keyOf(b, column), undefined, { numeric: true });
    rows.sort((a, b) => sign * compare(a, b));
    body.append(...rows);
    all("th", table.tHead).forEach((other) => other.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", up ? "ascending" : "descending");
  };
  all("table.sortable").forEach((table) => {
    all("thead button", table).forEach((button) =>
      button.addEventListener("click", () => sortTable(table, button.closest("th"))));
  });

  all(".copy").forEach((button) => button.addEventListener("click", async () => {
    const text = button.parentElement.querySelector("code").textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // A page opened from a file may not write to the clipboard: select the text instead.
      getSelection().selectAllChildren(button.parentElement.querySelector("code"));
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }));

  const place = (drawing, event) => {
    const box = drawing.getBoundingClientRect();
    const view = drawing.viewBox.baseVal;
    return [
      view.x + ((event.clientX - box.left) / box.width) * view.width,
      view.y + ((event.clientY - box.top) / box.height) * view.height,
    ];
  };

  const drawMap = (map, facts) => {
    const drawing = map.querySelector("svg");
    const marks = all(".marks use", drawing);
    const names = all(".names text", drawing);
    const note = document.getElementById("map-note");
    const sizes = marks.map((mark) => mark.style.transform.match(/scale\(.*\)/)[0]);
    const inOrder = marks.map((_, i) => i).sort((a, b) => facts.cluster[a] - facts.cluster[b] || a - b);
    const ring = drawing.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "circle"));
    ring.setAttribute("class", "ring");
    let layout = facts.layouts[0];
    let alone = null;
    let current = null;

    const tell = (i) => {
      current = i;
      ring.setAttribute("r", i === null ? 0 : Number(sizes[i].slice(6, -1)) + 2);
      if (i === null) { hideTip(); return; }
      ring.setAttribute("cx", layout.xy[2 * i]);
      ring.setAttribute("cy", layout.xy[2 * i + 1]);
      const list = document.createElement("dl");
      const values = facts.values[i];
      for (let v = 0; v < values.length; v += 2) {
        list.append(element("dt", facts.names[values[v]]), element("dd", values[v + 1]));
      }
      const box = drawing.getBoundingClientRect();
      const scale = box.width / drawing.viewBox.baseVal.width;
      const title = element("strong", `Cluster ${facts.cluster[i]}`);
      const rows = element("span", ` · ${facts.rows[i]}`);
      showTip([title, rows, list], box.left + layout.xy[2 * i] * scale, box.top + layout.xy[2 * i + 1] * scale);
    };
    const nearest = (event) => {
      const [x, y] = place(drawing, event);
      let best = null;
      let least = 30 ** 2;
      marks.forEach((_, i) => {
        if (alone !== null && facts.cluster[i] !== alone) return;
        const distance = (layout.xy[2 * i] - x) ** 2 + (layout.xy[2 * i + 1] - y) ** 2;
        if (distance < least) { least = distance; best = i; }
      });
      return best;
    };
    drawing.addEventListener("pointermove", (event) => tell(nearest(event)));
    drawing.addEventListener("pointerdown", (event) => tell(nearest(event)));
    drawing.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") tell(null); });
    drawing.addEventListener("blur", () => tell(null));
    drawing.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const at = current === null ? (step > 0 ? -1 : 0) : inOrder.indexOf(current);
      tell(inOrder[(at + step + inOrder.length) % inOrder.length]);
    });

    const moveTo = (wanted) => {
      layout = wanted;
      tell(null);
      marks.forEach((mark, i) => {
        mark.style.transform = `translate(${layout.xy[2 * i]}px,${layout.xy[2 * i + 1]}px) ${sizes[i]}`;
      });
      names.forEach((name, k) => {
        name.style.transform = `translate(${layout.at[2 * k]}px,${layout.at[2 * k + 1]}px)`;
      });
      note.textContent = layout.note;
    };
    const choices = all(".choices button", map);
    choices.forEach((button, i) => button.addEventListener("click", () => {
      choices.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      moveTo(facts.layouts[i]);
    }));

    const legend = all(".legend button", map);
    legend.forEach((button, k) => button.addEventListener("click", () => {
      alone = alone === k ? null : k;
      legend.forEach((other, j) => other.setAttribute("aria-pressed", String(j === alone)));
      marks.forEach((mark, i) => mark.classList.toggle("faded", alone !== null && facts.cluster[i] !== alone));
      names.forEach((name, j) => name.classList.toggle("faded", alone !== null && j !== alone));
    }));
  };

  const drawMatrix = (matrix, facts) => {
    const drawing = matrix.querySelector("svg");
    const side = drawing.viewBox.baseVal.width + drawing.viewBox.baseVal.x;
    const clusterAt = (position) => {
      const share = Math.min(Math.max(position / side, 0), 1 - 1e-9);
      return facts.edges.findIndex((edge, k) => share >= edge && share < facts.edges[k + 1]);
    };
    const tell = (event) => {
      const [across, down] = place(drawing, event).map(clusterAt);
      if (across < 0 || down < 0) { hideTip(); return; }
      const which = across === down ? `Within cluster ${across}` : `Clusters ${down} and ${across}`;
      showTip([element("span", `${which}: ${facts.words} ${facts.means[down][across]}`)], event.clientX, event.clientY);
    };
    drawing.addEventListener("pointermove", tell);
    drawing.addEventListener("pointerdown", tell);
    drawing.addEventListener("pointerleave", hideTip);
  };

  const map = document.getElementById("signature-map");
  if (map) drawMap(map, data("map"));
  const matrix = document.getElementById("similarity-matrix");
  if (matrix) drawMatrix(matrix, data("matrix"));
})();
