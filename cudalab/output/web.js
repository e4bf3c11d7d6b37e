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
