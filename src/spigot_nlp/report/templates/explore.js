// The explorer: search the sentences of a page, draw one of them, compare, and save what is shown.
"use strict";
(() => {
  const collator = (text) => text.normalize("NFKC").toLocaleLowerCase();

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  function save(text, name, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  function start(root) {
    const data = JSON.parse(document.getElementById(root.dataset.explorer).textContent);
    const find = (name) => root.querySelector(name);
    const form = find("form"), list = find(".explorer-list"), picture = find(".explorer-picture");
    const note = find(".explorer-note"), says = find(".explorer-says"), count = find(".explorer-count");
    const hint = note.textContent;
    const texts = data.sentences.map((sentence) => collator(sentence.text));
    const known = new Map();
    let shown = [], chosen = null, current = null, asked = 0;

    if (typeof DecompressionStream === "undefined") {
      count.textContent = "This browser is too old to unpack the drawings; any of the last years will do.";
      return;
    }
    find(".explorer-body").hidden = form.hidden = false;

    const system = () => form.elements.system.value;
    const possible = (other) => ["gold", "plain"].includes(other) ||
      data.pairs.some(([mine, theirs]) => String(mine) === system() && String(theirs) === other);
    const against = () => {
      const wanted = form.elements.against.value;
      return system() === "gold" || !possible(wanted) ? "plain" : wanted;
    };

    function filter() {
      const wanted = collator(form.elements.words.value).split(/\s+/).filter(Boolean);
      const kind = form.elements.kind.value, index = system();
      for (const option of form.elements.against.options) option.disabled = index === "gold" || !possible(option.value);
      shown = data.sentences.map((_, k) => k).filter((k) => {
        const flags = index === "gold" ? data.sentences[k].flags.join("") : data.sentences[k].flags[Number(index)];
        return wanted.every((word) => texts[k].includes(word)) && (!kind || flags.includes(kind));
      });
      count.textContent = shown.length === data.sentences.length
        ? `${shown.length} sentences of the development data; the most telling first.`
        : `${shown.length} of ${data.sentences.length} sentences.`;
      list.replaceChildren(...shown.map((k) => {
        const sentence = data.sentences[k];
        const item = document.createElement("li");
        item.id = `${root.dataset.explorer}-${k}`;
        item.setAttribute("role", "option");
        item.dataset.sentence = k;
        const text = document.createElement("span"), why = document.createElement("small");
        text.textContent = sentence.text;
        text.dir = "auto";
        why.textContent = `${sentence.number} · ${sentence.why}`;
        item.append(text, why);
        return item;
      }));
      if (shown.length) choose(shown.includes(chosen) ? chosen : shown[0]);
      else { asked++; picture.replaceChildren(); says.textContent = "No sentence is like that."; note.textContent = ""; current = null; }
    }

    async function choose(k) {
      chosen = k;
      const ticket = ++asked;
      for (const item of list.children) item.setAttribute("aria-selected", String(Number(item.dataset.sentence) === k));
      const item = document.getElementById(`${root.dataset.explorer}-${k}`);
      if (item) {
        list.setAttribute("aria-activedescendant", item.id);
        if (item.offsetTop < list.scrollTop || item.offsetTop + item.offsetHeight > list.scrollTop + list.clientHeight) {
          list.scrollTop = item.offsetTop - list.clientHeight / 3;
        }
      }
      if (!known.has(k)) known.set(k, unpack(data.sentences[k].packed));
      let pictures;
      try { pictures = await known.get(k); }
      catch (error) { says.textContent = "This drawing is damaged; make the report again."; return; }
      if (ticket !== asked) return; // another sentence was chosen meanwhile
      const sentence = data.sentences[k], index = pictures.shown[`${system()} ${against()}`];
      current = { svg: pictures.svg[index].replace("<style></style>", data.styles), tikz: pictures.tikz[index], name: `sentence-${sentence.number}` };
      picture.innerHTML = current.svg;
      if (system() !== "gold") annotate(pictures.notes[Number(system())]);
      const name = sentence.id ? `${sentence.id}: ` : "";
      says.textContent = name + (system() === "gold" ? "the gold annotation" : `${data.systems[Number(system())]}: ${sentence.says[Number(system())]}`);
      note.textContent = hint;
    }

    /** Write the scores of the system into the titles of the arcs that it found. */
    function annotate(notes) {
      for (const arc of picture.querySelectorAll(".arc:not(.missed, .gone)")) {
        const text = notes[`${arc.dataset.side} ${arc.dataset.start} ${arc.dataset.end}`];
        const title = arc.querySelector("title");
        if (text && title) title.textContent += `\n${text}`;
      }
    }

    /** Move within the list as it is filtered now. */
    function go(by) {
      const place = shown.indexOf(chosen) + by;
      if (place >= 0 && place < shown.length) choose(shown[place]);
    }

    function tell(event) {
      const arc = event.target.closest?.(".arc"), word = event.target.closest?.("[data-word]");
      const heads = word ? [...picture.querySelectorAll(`.arc[data-side="below"][data-end="${Number(word.dataset.word)}"]`)] : [];
      const into = word && !heads.length ? [...picture.querySelectorAll(`.arc[data-side="above"][data-end="${Number(word.dataset.word)}"]`)] : [];
      const titles = [...(arc ? [arc] : []), ...heads, ...into].map((each) => each.querySelector("title")?.textContent ?? "");
      if (titles.length) note.textContent = titles.join("\n");
    }

    for (const kind of ["input", "change"]) form.addEventListener(kind, filter);
    form.addEventListener("submit", (event) => event.preventDefault());
    list.addEventListener("click", (event) => {
      const item = event.target.closest("li");
      if (item) choose(Number(item.dataset.sentence));
    });
    list.addEventListener("keydown", (event) => {
      const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8, Home: -Infinity, End: Infinity }[event.key];
      if (!by) return;
      event.preventDefault();
      const place = Math.min(Math.max(shown.indexOf(chosen) + by, 0), shown.length - 1);
      if (shown.length) choose(shown[place]);
    });
    for (const kind of ["pointerover", "focusin", "click"]) picture.addEventListener(kind, tell);
    root.querySelectorAll("[data-go]").forEach((button) => button.addEventListener("click", () => go(Number(button.dataset.go))));
    root.querySelectorAll("[data-save]").forEach((button) => button.addEventListener("click", () => {
      if (!current) return;
      if (button.dataset.save === "svg") save(current.svg, `${current.name}.svg`, "image/svg+xml");
      else save(current.tikz, `${current.name}.tex`, "text/x-tex");
    }));
    filter();
  }

  document.querySelectorAll("[data-explorer]").forEach(start);
})();
