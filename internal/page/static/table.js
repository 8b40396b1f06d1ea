
"use strict";
// Sorts and filters the tables of the page. The rows are in the page already; those beyond the first pieces are taken out of the document
// until they are wanted, so that long tables stay usable.
(() => {
  const $ = (id) => document.getElementById(id);
  const piece = 500;
  const collator = new Intl.Collator("en", { numeric: true });
  const element = (tag, properties, ...content) => {
    const out = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) out.setAttribute(name, value);
    out.append(...content);
    return out;
  };

  const tables = [...document.querySelectorAll("table")].map((table) => {
    const titles = [...table.tHead.rows[0].cells].map((th) => th.textContent);
    const rows = [...table.tBodies[0].rows].filter((tr) => tr.className !== "none")
      .map((tr) => ({ tr, text: [...tr.cells].map((td) => td.textContent.toLowerCase()).join("\n") }));
    return { table, titles, rows, limit: piece };
  });

  // Blocks in place of a table's rows, as on a phone, would hide the table from screen readers without the roles.
  const dress = (table) => {
    table.table.setAttribute("role", "table");
    for (const part of [table.table.tHead, table.table.tBodies[0]]) part.setAttribute("role", "rowgroup");
    table.table.tHead.rows[0].setAttribute("role", "row");
    [...table.table.tHead.rows[0].cells].forEach((th, column) => {
      th.setAttribute("role", "columnheader");
      const button = element("button", { type: "button", class: "sort" }, th.textContent, element("span", { class: "way", "aria-hidden": "true" }));
      button.addEventListener("click", () => {
        const old = readAddress().sort.get(tables.indexOf(table));
        go({ sort: [tables.indexOf(table), { column, down: !!old && old.column === column && !old.down }] });
      });
      th.replaceChildren(button);
    });
    table.more = element("button", { type: "button", class: "more" });
    table.more.addEventListener("click", () => { table.limit += piece; show(); });
    table.table.after(element("p", {}, table.more));
    table.count = element("span", { class: "count" });
    table.table.caption.append(" ", table.count);
  };
  const label = (table, row) => {
    if (row.labelled) return;
    row.labelled = true;
    row.tr.setAttribute("role", "row");
    [...row.tr.cells].forEach((td, i) => { td.setAttribute("role", "cell"); td.dataset.label = table.titles[i]; });
  };

  // The address holds the state: #filter=web&sort=0.2,1.0d is the third column of the first table and, downwards, the first of the second.
  const readAddress = () => {
    const parts = new URLSearchParams(location.hash.slice(1));
    const sort = new Map();
    for (const one of (parts.get("sort") || "").split(",")) {
      const [, table, column, down] = /^(\d+)\.(\d+)(d?)$/.exec(one) || [];
      if (table !== undefined && tables[table] && column < tables[table].titles.length) sort.set(Number(table), { column: Number(column), down: down === "d" });
    }
    return { filter: parts.get("filter") || "", sort };
  };
  const go = (change) => {
    const next = readAddress();
    if (change.sort) next.sort.set(...change.sort);
    if (change.filter !== undefined) next.filter = change.filter;
    const sort = [...next.sort].map(([table, by]) => table + "." + by.column + (by.down ? "d" : "")).join();
    const parts = [next.filter && "filter=" + encodeURIComponent(next.filter), sort && "sort=" + sort].filter(Boolean);
    const address = "#" + parts.join("&");
    // A filter is typed letter by letter, and is one step back in the history.
    if (address !== (location.hash || "#")) history[change.sort ? "pushState" : "replaceState"](null, "", address);
    for (const table of tables) table.limit = piece;
    show();
  };

  const show = () => {
    const state = readAddress();
    if ($("filter").value !== state.filter) $("filter").value = state.filter;
    const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0, all = 0;
    tables.forEach((table, at) => {
      const by = state.sort.get(at);
      const left = table.rows.filter((row) => words.every((word) => row.text.includes(word)));
      if (by) {
        const text = (row) => row.tr.cells[by.column].textContent;
        left.sort((a, b) => (by.down ? -1 : 1) * collator.compare(text(a), text(b)));
      }
      const some = left.slice(0, table.limit);
      for (const row of some) label(table, row);
      const none = element("tr", { class: "none", role: "row" }, element("td", { role: "cell", colspan: Math.max(1, table.titles.length) }, table.rows.length ? "No row has this text." : "Nothing."));
      table.table.tBodies[0].replaceChildren(...(some.length ? some.map((row) => row.tr) : [none]));
      [...table.table.tHead.rows[0].cells].forEach((th, column) => {
        const way = by && by.column === column ? (by.down ? "descending" : "ascending") : "none";
        th.setAttribute("aria-sort", way);
        th.querySelector(".way").textContent = { none: " ↕", ascending: " ▲", descending: " ▼" }[way];
      });
      const rest = left.length - some.length;
      table.more.hidden = rest === 0;
      table.more.textContent = `Show ${Math.min(piece, rest)} more of ${left.length} rows`;
      table.count.textContent = left.length === table.rows.length ? `${table.rows.length} ${table.rows.length === 1 ? "row" : "rows"}` : `${left.length} of ${table.rows.length} rows`;
      shown += left.length;
      all += table.rows.length;
    });
    $("status").textContent = words.length ? `The filter leaves ${shown} of ${all} rows.` : "";
  };

  $("filter").addEventListener("input", () => go({ filter: $("filter").value }));
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  $("skip").addEventListener("click", (event) => {
    event.preventDefault();
    // Not a button: the same key would press it.
    const first = document.querySelector("caption");
    if (first) { first.tabIndex = -1; first.focus(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "/" && event.target.tagName !== "INPUT") { event.preventDefault(); $("filter").focus(); $("filter").select(); }
    if (event.key === "Escape" && event.target === $("filter")) go({ filter: "" });
  });
  window.addEventListener("hashchange", show);
  window.addEventListener("popstate", show);
  document.body.classList.add("scripted");
  $("controls").hidden = false;
  $("keys").hidden = false;
  for (const table of tables) dress(table);
  show();
})();
