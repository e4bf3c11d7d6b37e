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

// A slider over the requests of one access: lanes above, the banks or sectors that they use below.
document.querySelectorAll(".player").forEach((player) => {
  const access = JSON.parse(player.dataset.access);
  const [slider, told, svg] = ["input", "output", "svg"].map((name) => player.querySelector(name));
  const WORD = 4, SECTOR = 32, BANKS = 32, WIDTH = 20, UPPER = 4, LOWER = 118, SIDE = 16;
  const piece = access.shared ? WORD : SECTOR;

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

  const draw = () => {
    const { requests, lanes } = access.steps[slider.value - 1];
    const active = lanes.map((at, lane) => ({ at, lane })).filter(({ at }) => at !== null);
    const used = new Map();  // a word or sector, by its number: the place where it is drawn
    const rounds = [];  // of each place: how many words a bank has to give, one after another
    const lines = [];
    const sectors = [...new Set(active.flatMap(({ at }) =>
      [Math.floor(at / SECTOR), Math.floor((at + access.bytes - 1) / SECTOR)]))]
      .sort((a, b) => a - b);
    active.forEach(({ at, lane }) => {
      for (let n = Math.floor(at / piece); n <= Math.floor((at + access.bytes - 1) / piece); n++) {
        const place = access.shared ? n % BANKS : sectors.indexOf(n);
        if (!used.has(n)) {
          rounds[place] = (rounds[place] || 0) + 1;
          used.set(n, rounds[place]);
        }
        lines.push({ lane, place, again: access.shared && used.get(n) > 1 });
      }
    });

    svg.replaceChildren();
    lines.filter(({ place }) => place < BANKS).forEach(({ lane, place, again }) => add("line", {
      x1: lane * WIDTH + 6 + SIDE / 2, y1: UPPER + SIDE, class: again ? "again" : "",
      x2: place * WIDTH + 6 + SIDE / 2, y2: LOWER,
    }));
    lanes.forEach((at, lane) => cell(lane, UPPER, at === null ? "" : "on", at === null ? "" : lane));
    const shown = access.shared ? BANKS : Math.min(sectors.length, BANKS);
    for (let place = 0; place < shown; place++) {
      const times = rounds[place] || 0;
      cell(place, LOWER, times > 1 ? "again" : times ? "on" : "", times > 1 ? times : "");
    }
    const least = Math.ceil(active.length * access.bytes / SECTOR);
    const most = Math.max(...rounds.filter(Boolean));
    const cost = access.shared
      ? (most === 1 ? "no two words in one bank" : "up to " + most + " words in one bank")
      : sectors.length + " sectors of 32 bytes" +
        (sectors.length > least ? ", " + least + " would hold as much" : "");
    told.textContent = "step " + slider.value + " of " + access.steps.length + ": " +
      active.length + " of 32 lanes, " + cost + "; " + requests + " such " +
      (requests === 1 ? "request" : "requests in a row");
    svg.setAttribute("aria-label", told.textContent);
  };
  slider.addEventListener("input", draw);
  player.hidden = false;
  draw();
});
