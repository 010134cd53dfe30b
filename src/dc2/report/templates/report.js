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
    let names = all(".names text", drawing);
    const note = document.getElementById("map-note");
    const sizes = marks.map((mark) => mark.style.transform.match(/scale\(.*\)/)[0]);
    const rank = (i) => (facts.cluster[i] < 0 ? Infinity : facts.cluster[i]); // noise comes last
    const inOrder = marks.map((_, i) => i).sort((a, b) => rank(a) - rank(b) || a - b);
    const ring = drawing.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "circle"));
    ring.setAttribute("class", "ring");
    let layout = facts.layouts[0];
    let alone = null;
    let current = null;
    let withNoise = true;
    const isShown = (i) => (alone === null || facts.cluster[i] === alone) && (withNoise || facts.cluster[i] >= 0);

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
      const title = element("strong", facts.cluster[i] < 0 ? "Noise" : `Cluster ${facts.cluster[i]}`);
      const rows = element("span", ` · ${facts.rows[i]}`);
      showTip([title, rows, list], box.left + layout.xy[2 * i] * scale, box.top + layout.xy[2 * i + 1] * scale);
    };
    const nearest = (event) => {
      const [x, y] = place(drawing, event);
      let best = null;
      let least = 30 ** 2;
      marks.forEach((_, i) => {
        if (!isShown(i)) return;
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
      const walk = inOrder.filter((i) => withNoise || facts.cluster[i] >= 0);
      const at = current === null ? (step > 0 ? -1 : 0) : walk.indexOf(current);
      tell(walk[(at + step + walk.length) % walk.length]);
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

    const showAlone = (wanted) => {
      alone = wanted;
      all(".legend button", map).forEach((other, j) => other.setAttribute("aria-pressed", String(j === alone)));
      marks.forEach((mark, i) => mark.classList.toggle("faded", alone !== null && facts.cluster[i] !== alone));
      names.forEach((name, j) => name.classList.toggle("faded", alone !== null && j !== alone));
    };
    const listen = () => all(".legend button", map).forEach((button, k) =>
      button.addEventListener("click", () => showAlone(alone === k ? null : k)));
    listen();

    // Of each cluster the mark nearest to its middle carries the number, so that none stands in a void.
    const namePlaces = (cluster, count, { xy }) => {
      const sums = Array.from({ length: count }, () => [0, 0, 0]);
      cluster.forEach((k, i) => {
        if (k < 0 || k >= count) return;
        sums[k][0] += xy[2 * i];
        sums[k][1] += xy[2 * i + 1];
        sums[k][2] += 1;
      });
      const best = sums.map(() => [Infinity, 0, 0]);
      cluster.forEach((k, i) => {
        if (k < 0 || k >= count) return;
        const [x, y] = [xy[2 * i], xy[2 * i + 1]];
        const off = (x - sums[k][0] / sums[k][2]) ** 2 + (y - sums[k][1] / sums[k][2]) ** 2;
        if (off < best[k][0]) best[k] = [off, x, y];
      });
      return best.flatMap(([, x, y]) => [x, y]);
    };
    const clusterMap = (view, look) => {
      tell(null);
      facts.cluster = view.cluster;
      facts.layouts.forEach((one) => { one.at = namePlaces(view.cluster, view.words.length, one); });
      marks.forEach((mark, i) => {
        mark.setAttribute("href", `#mark-${look.shape(view.cluster[i])}`);
        mark.style.fill = look.colour(view.cluster[i]);
      });
      inOrder.sort((a, b) => rank(a) - rank(b) || a - b);
      const holder = drawing.querySelector(".names");
      holder.setAttribute("class", view.words.length > 20 ? "names many" : "names");
      names = view.words.map((_, k) => {
        const name = document.createElementNS("http://www.w3.org/2000/svg", "text");
        name.setAttribute("dy", "0.35em");
        name.setAttribute("text-anchor", "middle");
        name.textContent = k;
        return name;
      });
      holder.replaceChildren(...names);
      map.querySelector(".legend").replaceChildren(...view.words.map((_, k) => {
        const button = element("button", "");
        button.type = "button";
        button.setAttribute("aria-label", `Show cluster ${k} alone`);
        button.append(look.swatch(k));
        return button;
      }));
      listen();
      showAlone(null);
      moveTo(layout);
    };
    const showNoise = (wanted) => {
      withNoise = wanted;
      tell(null);
      marks.forEach((mark, i) => { mark.style.display = facts.cluster[i] < 0 && !withNoise ? "none" : ""; });
    };
    return { clusterMap, showNoise };
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

  // Other numbers of clusters: tables, heat map and map follow the slider. Numbers were written by Python.
  const explore = (facts, map) => {
    const chosen = facts.views.findIndex((view) => view.chosen);
    const shape = (k) => (k < 0 ? "noise" : facts.shapes[Math.floor(k / facts.colours) % facts.shapes.length]);
    const colour = (k) => (k < 0 ? "var(--muted)" : `var(--c${k % facts.colours})`);
    const swatch = (k) => {
      const [holder, dot] = [element("span", ""), element("i", "")];
      holder.className = "swatch";
      dot.className = `dot ${shape(k)}`;
      dot.style.background = colour(k);
      holder.append(dot, String(k));
      return holder;
    };
    const look = { shape, colour, swatch };
    let view = facts.views[chosen];

    const cell = (content, { name = "td", sort = null, number = true } = {}) => {
      const made = element(name, "");
      made.append(content);
      if (name === "th") made.scope = "row";
      else if (number) made.className = "number";
      if (sort !== null) made.dataset.sort = sort;
      return made;
    };
    const bar = (share, text, fill) => {
      const [holder, track, full] = [element("span", ""), element("i", ""), element("b", "")];
      holder.className = "bar";
      full.style.width = `${100 * share}%`;
      full.style.background = fill;
      track.append(full);
      holder.append(element("span", text), track);
      return holder;
    };
    const wordsOf = (words) => {
      if (!words.length) return [Object.assign(element("span", "near the average in every column"), { className: "muted" })];
      return words.map(([word, name, mean, overall]) => {
        const holder = Object.assign(element("span", ""), { className: "word" });
        holder.append(element("b", word), ` ${name}`, element("small", ` ${mean} against ${overall}`));
        return holder;
      });
    };
    const sizeRow = (k, largest) => {
      const row = element("tr", "");
      const stability = view.stability ? view.stability[k] : null;
      const words = cell("", { number: false, sort: view.words[k].map(([word, name]) => `${word} ${name}`).join(", ") });
      words.append(...wordsOf(view.words[k]));
      row.append(
        cell(swatch(k), { name: "th", sort: k }),
        cell(view.rowsText[k], { sort: view.rows[k] }),
        cell(bar(view.share[k] / largest, view.shareText[k], colour(k)), { sort: view.share[k] }),
        cell(stability === null ? "–" : stability.toFixed(2), { sort: stability ?? -1 }),
        cell(String(view.signatures[k]), { sort: view.signatures[k] }),
        words,
      );
      return row;
    };
    const heatCell = (k, column) => {
      const value = view.difference[k][column];
      const strength = Math.min(Math.abs(value) / 2, 1);
      const made = cell((value > 0.05 ? "+" : "") + value.toFixed(1).replace("-0.0", "0.0").replace("-", "−"), { sort: value });
      made.className = `number ${value > 0 ? "high" : "low"}${strength > 0.6 ? " strong" : ""}`;
      made.style.setProperty("--s", `${100 * strength}%`);
      made.dataset.tip = `Cluster ${k}, ${facts.columns[column]}: typically ${view.middles[k][column]}; all: ${facts.overall[column]}`;
      return made;
    };
    const fillHeat = (table) => {
      const titles = view.words.map((_, k) => {
        const [title, button] = [element("th", ""), element("button", "")];
        title.scope = "col";
        title.className = "number";
        button.type = "button";
        button.append(swatch(k));
        button.addEventListener("click", () => sortTable(table, title));
        title.append(button);
        return title;
      });
      const head = table.tHead.rows[0];
      head.replaceChildren(head.cells[0], ...titles, head.cells[head.cells.length - 1]);
      table.tBodies[0].replaceChildren(...facts.columns.map((name, column) => {
        const row = element("tr", "");
        row.append(cell(name, { name: "th" }), ...view.words.map((_, k) => heatCell(k, column)), cell(facts.overall[column]));
        return row;
      }));
    };

    // What Python wrote for the chosen number is kept, and put back when it is chosen again.
    const sizes = document.querySelector("#sizes table");
    const heat = document.querySelector("#heat table");
    const original = { sizes: [...sizes.tBodies[0].rows], head: [...heat.tHead.rows[0].cells], heat: [...heat.tBodies[0].rows] };
    const noise = original.sizes.filter((row) => row.querySelector(".noise"));
    const show = (wanted) => {
      view = wanted;
      if (view.chosen) {
        sizes.tBodies[0].replaceChildren(...original.sizes);
        heat.tHead.rows[0].replaceChildren(...original.head);
        heat.tBodies[0].replaceChildren(...original.heat);
      } else {
        const largest = Math.max(...view.share) || 1;
        sizes.tBodies[0].replaceChildren(...view.words.map((_, k) => sizeRow(k, largest)), ...noise);
        fillHeat(heat);
      }
      if (map) map.clusterMap(view, look);
      if (compare) fillPickers();
    };

    const slider = document.getElementById("view");
    if (slider) {
      const reset = document.getElementById("view-reset");
      const follow = () => {
        const wanted = facts.views[Number(slider.value)];
        document.getElementById("view-number").textContent = wanted.rows.length;
        document.getElementById("view-note").textContent = wanted.note;
        slider.setAttribute("aria-valuetext", `${wanted.rows.length} clusters`);
        reset.disabled = wanted.chosen;
        document.body.classList.toggle("other-view", !wanted.chosen);
        show(wanted);
      };
      slider.addEventListener("input", follow);
      reset.addEventListener("click", () => { slider.value = chosen; follow(); slider.focus(); });
    }

    const compare = document.getElementById("compare");
    const pickers = ["compare-a", "compare-b"].map((id) => document.getElementById(id));
    const fillTable = () => {
      const [a, b] = pickers.map((picker) => Number(picker.value));
      const table = element("table", "");
      table.setAttribute("aria-label", `Clusters ${a} and ${b}`);
      const head = table.createTHead().insertRow();
      ["Column", `Cluster ${a}`, `Cluster ${b}`, "Difference, in standard deviations"].forEach((text, i) => {
        const title = element("th", text);
        title.scope = "col";
        if (i) title.className = "number";
        head.append(title);
      });
      const body = table.createTBody();
      const apart = facts.columns.map((_, column) => view.difference[a][column] - view.difference[b][column]);
      facts.columns.map((_, column) => column).sort((i, j) => Math.abs(apart[j]) - Math.abs(apart[i])).forEach((column) => {
        const row = body.insertRow();
        row.append(
          cell(facts.columns[column], { name: "th" }),
          cell(view.middles[a][column]),
          cell(view.middles[b][column]),
          cell((apart[column] > 0 ? "+" : "") + apart[column].toFixed(1).replace("-", "−")),
        );
      });
      document.getElementById("compare-table").replaceChildren(table);
    };
    const fillPickers = () => {
      pickers.forEach((picker, at) => {
        const was = Math.min(Number(picker.value), view.words.length - 1);
        picker.replaceChildren(...view.words.map((_, k) => Object.assign(element("option", String(k)), { value: k })));
        picker.value = at && was === Number(pickers[0].value) ? (was + 1) % view.words.length : was;
      });
      fillTable();
    };
    if (compare) {
      pickers.forEach((picker) => picker.addEventListener("change", fillTable));
      fillTable();
    }

    // Noise is in the table, on the map and in the file, or in none of them.
    const hide = document.getElementById("noise");
    let withNoise = true;
    if (hide) hide.addEventListener("click", () => {
      withNoise = !withNoise;
      hide.setAttribute("aria-pressed", String(!withNoise));
      hide.textContent = withNoise ? "Hide noise" : "Show noise";
      noise.forEach((row) => { row.hidden = !withNoise; });
      if (map) map.showNoise(withNoise);
    });

    const quoted = (value) => `"${String(value ?? "").replaceAll('"', '""')}"`;
    const csv = () => {
      const lines = [["cluster", facts.unit, "share", "stability", "signatures", "sets_apart"].join(",")];
      view.rows.forEach((rows, k) => {
        const words = (view.words[k] ?? []).map(([word, name]) => `${word} ${name}`).join(", ");
        lines.push([k, rows, view.share[k], view.stability ? view.stability[k] : "", view.signatures[k], quoted(words)].join(","));
      });
      if (facts.noise && withNoise) {
        lines.push([-1, facts.noise.rows, facts.noise.share, "", facts.noise.signatures, quoted("in no cluster")].join(","));
      }
      return `${lines.join("\n")}\n`;
    };
    document.getElementById("download").addEventListener("click", () => {
      const link = element("a", "");
      link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
      link.download = "clusters.csv";
      link.click();
      URL.revokeObjectURL(link.href);
    });
  };

  const map = document.getElementById("signature-map");
  const drawn = map ? drawMap(map, data("map")) : null;
  if (document.getElementById("sizes")) explore(data("explore"), drawn);
  const matrix = document.getElementById("similarity-matrix");
  if (matrix) drawMatrix(matrix, data("matrix"));
})();
