(() => {
  const rows = [...document.querySelectorAll("tr[data-cost]")]
    .sort((a, b) => b.dataset.cost - a.dataset.cost);
  let at = -1;
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !rows.length) return;
    if (event.key === "t") { scrollTo(0, 0); at = -1; return; }
    const step = { n: 1, p: -1 }[event.key];
    if (!step) return;
    at = (at + step + rows.length) % rows.length;
    rows[at].focus({ preventScroll: true });
    rows[at].scrollIntoView({ block: "center" });
  });
  addEventListener("beforeprint", () =>
    document.querySelectorAll("details").forEach((one) => { one.open = true; }));
})();

// A slider over the steps of an access or a branch: the lanes of a warp, and where they go.
document.querySelectorAll(".player").forEach((player) => {
  const shown = JSON.parse(player.dataset.shown);
  const [slider, told, svg] = ["input", "output", "svg"].map((name) => player.querySelector(name));
  const WORD = 4, SECTOR = 32, BANKS = 32, WIDTH = 20, UPPER = 4, LOWER = 118, SIDE = 16, WAY = 46;

  const add = (name, attributes, text = "") => {
    const one = document.createElementNS(svg.namespaceURI, name);
    Object.entries(attributes).forEach(([key, value]) => one.setAttribute(key, value));
    one.textContent = text;
    svg.append(one);
  };
  const cell = (place, y, look, text) => {
    add("rect", { x: place * WIDTH + 6, y, width: SIDE, height: SIDE, rx: 3, class: look });
    add("text", { x: place * WIDTH + 6 + SIDE / 2, y: y + 12 }, text);
  };
  const middle = (place) => place * WIDTH + 6 + SIDE / 2;
  const warp = (lanes) =>
    lanes.forEach((at, lane) => cell(lane, UPPER, at === null ? "" : "on", at === null ? "" : lane));

  // Lanes above, the banks or sectors that they use below. Returns what there is to say.
  const drawAccess = (lanes, active) => {
    const piece = shown.shared ? WORD : SECTOR;
    const used = new Map();  // a word or sector, by its number: the place where it is drawn
    const rounds = [];  // of each place: how many words a bank has to give, one after another
    const lines = [];
    const sectors = [...new Set(active.flatMap(({ at }) =>
      [Math.floor(at / SECTOR), Math.floor((at + shown.bytes - 1) / SECTOR)]))]
      .sort((a, b) => a - b);
    active.forEach(({ at, lane }) => {
      for (let n = Math.floor(at / piece); n <= Math.floor((at + shown.bytes - 1) / piece); n++) {
        const place = shown.shared ? n % BANKS : sectors.indexOf(n);
        if (!used.has(n)) {
          rounds[place] = (rounds[place] || 0) + 1;
          used.set(n, rounds[place]);
        }
        lines.push({ lane, place, again: shown.shared && used.get(n) > 1 });
      }
    });

    lines.filter(({ place }) => place < BANKS).forEach(({ lane, place, again }) => add("line", {
      x1: middle(lane), y1: UPPER + SIDE, x2: middle(place), y2: LOWER, class: again ? "again" : "",
    }));
    warp(lanes);
    const places = shown.shared ? BANKS : Math.min(sectors.length, BANKS);
    for (let place = 0; place < places; place++) {
      const times = rounds[place] || 0;
      cell(place, LOWER, times > 1 ? "again" : times ? "on" : "", times > 1 ? times : "");
    }
    const least = Math.ceil(active.length * shown.bytes / SECTOR);
    const most = Math.max(...rounds.filter(Boolean));
    if (shown.shared)
      return most === 1 ? "no two words in one bank" : "up to " + most + " words in one bank";
    return sectors.length + " sectors of 32 bytes" +
      (sectors.length > least ? ", " + least + " would hold as much" : "");
  };

  // Lanes above, and below them a row for each way that some of them go. Returns what to say.
  const drawBranch = (lanes, active) => {
    const ways = shown.lines.map((_, way) => way).filter((way) => lanes.includes(way));
    const look = (way) => (way ? "again" : "on");
    const where = (way) => {
      const line = shown.lines[way];
      const alike = shown.lines.indexOf(line) !== shown.lines.lastIndexOf(line);
      return line ? "line " + line + (alike ? ", way " + (way + 1) : "") : "out of the function";
    };
    ways.forEach((way, row) => {
      const y = UPPER + WAY * (row + 1);
      active.filter(({ at }) => at === way).forEach(({ lane }) =>
        add("line", { x1: middle(lane), y1: UPPER + SIDE, x2: middle(lane), y2: y,
          class: look(way) }));
      add("text", { x: 6, y: y - 6, class: "way" }, where(way));
    });
    ways.forEach((way, row) => lanes.forEach((at, lane) =>
      cell(lane, UPPER + WAY * (row + 1), at === way ? look(way) : "", at === way ? lane : "")));
    warp(lanes);
    const count = (way) => active.filter(({ at }) => at === way).length;
    return ways.map((way) => (ways.length < 2 ? "all" : count(way)) + " to " + where(way))
      .join(", then ").replaceAll("to out", "out");
  };

  const draw = () => {
    const { times, lanes } = shown.steps[slider.value - 1];
    const active = lanes.map((at, lane) => ({ at, lane })).filter(({ at }) => at !== null);
    svg.replaceChildren();
    const said = (shown.lines ? drawBranch : drawAccess)(lanes, active);
    const noun = shown.lines ? "execution" : "request";
    told.textContent = "step " + slider.value + " of " + shown.steps.length + ": " +
      active.length + " of 32 lanes, " + said + "; " + times + " such " +
      (times === 1 ? noun : noun + "s in a row");
    svg.setAttribute("aria-label", told.textContent);
  };
  if (shown.lines) {
    const most = Math.max(...shown.steps.map(({ lanes }) =>
      new Set(lanes.filter((way) => way !== null)).size));
    svg.setAttribute("viewBox", "0 0 648 " + (UPPER + WAY * most + SIDE + 6));
  }
  slider.addEventListener("input", draw);
  player.hidden = false;
  draw();
});
