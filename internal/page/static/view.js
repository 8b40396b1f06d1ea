
"use strict";
// Shows the model: one kind at a time as a tree whose fields are made when they are opened.
(() => {
  const { data } = model;
  const $ = (id) => document.getElementById(id);
  const element = (tag, properties, ...content) => {
    const out = document.createElement(tag);
    for (const [name, value] of Object.entries(properties || {})) {
      if (name === "class") out.className = value;
      else if (name === "click") out.addEventListener("click", value);
      else out.setAttribute(name, value);
    }
    out.append(...content.filter((part) => part !== null && part !== undefined).map((part) => (part instanceof Node ? part : model.printable(part))));
    return out;
  };
  const kindById = new Map(data.kinds.map((kind) => [model.idOf(kind), kind]));
  const places = new WeakMap(); // the place of each item of the tree
  let state = { kind: "", path: "", verb: "", show: "", subject: "" };
  let filter = null;
  let subjects = null; // the subjects that the filter leaves, null for all
  let shownTo = () => true;

  // The address holds the state: #kind=apps/v1/Deployment&path=.spec.replicas&verb=…&show=…&subject=User alice
  const readAddress = () => {
    const parts = new URLSearchParams(location.hash.slice(1));
    const shows = [...$("show").options].map((option) => option.value);
    return {
      kind: kindById.has(parts.get("kind")) ? parts.get("kind") : data.kinds.length ? model.idOf(data.kinds[0]) : "",
      path: parts.get("path") || "", verb: parts.get("verb") || "", show: shows.includes(parts.get("show")) ? parts.get("show") : "",
      subject: (access && parts.get("subject")) || "",
    };
  };
  const address = (of) => {
    const kept = Object.entries(of).filter(([, value]) => value !== "");
    return "#" + kept.map(([name, value]) => name + "=" + encodeURIComponent(value).replaceAll("%2F", "/").replaceAll("%3A", ":")).join("&");
  };
  const go = (change) => {
    const next = address({ ...state, ...change });
    if (next === location.hash) return;
    history.pushState(null, "", next);
    show(readAddress());
  };

  const verbMarks = (place, index) => {
    const verb = data.verbs[index];
    const sets = model.setsOn(place.kind, index, place.depth === 0 || model.inStatus(place));
    const out = [element("span", { class: "verb" }, verb.text)];
    if (verb.excluded) out.push(element("span", { class: "mark barrier" }, "■ barrier"));
    if (!verb.excluded && verb.when) out.push(element("span", { class: "mark barrier" }, "■ barrier when " + verb.when.join(" or ")));
    for (const set of sets) {
      const what = set.actions ? set.actions.join(", ") + " by set" : set.one ? "barrier for " + set.one : set.when ? "barrier under conditions" : "barrier";
      out.push(element("span", { class: "mark barrier" }, "■ " + what + (set.statusOnly && place.depth === 0 ? " in .status" : "")));
    }
    if (verb.powers) out.push(element("span", { class: "mark power" }, "! " + (access && verb.powers.length > 2 ? verb.powers.length + " powers" : verb.powers.map((p) => data.powers[p].name).join(", "))));
    return out;
  };
  // accessMarks says how many subjects may change the field of a row, or how those of the filter may.
  const accessMarks = (place) => {
    if (!access || !access.has(place)) return [];
    const own = access.sourceOf(place) === place;
    const mark = (how, text) => element("span", { class: "mark " + (own || subjects ? how.name : "none") }, how.mark + " " + text);
    const groups = access.byHow(access.holders(place).filter((holder) => !subjects || subjects.has(holder.subject)));
    if (!groups.length) return [element("span", { class: "mark none" }, subjects ? "only fields below" : "✕ no subject")];
    if (subjects && subjects.size === 1) return groups.map(({ how }) => mark(how, how.name));
    return groups.map(({ how, holders }) => mark(how, own && holders.length === 1 ? how.name + ": " + access.names[holders[0].subject] : holders.length + " " + how.name));
  };
  const roles = { serverWritten: "written by the API server, needs no verb", identity: "needs no verb in a new object", ownership: "compared by owners" };

  // --- the tree
  const visible = (place) => {
    const shown = model.shownIn(place.kind, filter);
    return model.children(place).filter((child) => (!shown || shown.has(child.node)) && shownTo(child));
  };
  const item = (place) => {
    const node = data.nodes[place.node];
    const again = model.repeats(place);
    const below = again ? [] : visible(place);
    const name = place.depth === 0 ? place.kind.kind : place.key.slice(place.up.key.length);
    const row = element("div", { class: "row" },
      element("span", { class: "twist", "aria-hidden": "true" }, below.length ? "▸" : ""),
      element("span", { class: "name" }, name), element("span", { class: "type" }, "<" + data.strings[node.t] + ">"),
      ...accessMarks(place),
      ...(node.v || []).flatMap((verb) => verbMarks(place, verb)),
      node.r ? element("span", { class: "role" }, roles[node.r] || node.r) : null,
      again ? element("span", { class: "role" }, "repeats " + (again.key || "the object")) : null);
    const out = element("li", { role: "treeitem", tabindex: "-1", "aria-level": place.depth + 1, "aria-selected": "false" }, row);
    if (below.length) out.setAttribute("aria-expanded", "false");
    places.set(out, place);
    return out;
  };
  const open = (li) => {
    if (li.getAttribute("aria-expanded") !== "false") return;
    li.setAttribute("aria-expanded", "true");
    li.querySelector(".twist").textContent = "▾";
    const list = element("ul", { role: "group" });
    for (const child of visible(places.get(li))) list.append(item(child));
    li.append(list);
  };
  const close = (li) => {
    if (li.getAttribute("aria-expanded") !== "true") return;
    li.setAttribute("aria-expanded", "false");
    li.querySelector(".twist").textContent = "▸";
    li.lastElementChild.remove();
    if (!document.activeElement || !li.contains(document.activeElement)) return;
    focus(li);
  };
  const focus = (li) => {
    for (const other of $("tree").querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
    li.tabIndex = 0;
    li.focus();
  };
  const openTo = (place) => {
    let li = $("tree").firstElementChild;
    for (const at of model.way(place).slice(1)) {
      open(li);
      const next = [...li.querySelectorAll(":scope > ul > li")].find((child) => places.get(child).key === at.key);
      if (!next) return li;
      li = next;
    }
    return li;
  };
  // With a filter, what it leaves is opened as long as that is little.
  const openAll = (budget) => {
    const queue = [$("tree").firstElementChild];
    while (queue.length && budget > 0) {
      const li = queue.shift();
      open(li);
      const below = [...li.querySelectorAll(":scope > ul > li")];
      budget -= below.length;
      queue.push(...below);
    }
  };
  const select = (li) => {
    for (const other of $("tree").querySelectorAll('[aria-selected="true"]')) other.setAttribute("aria-selected", "false");
    li.setAttribute("aria-selected", "true");
    for (const other of $("tree").querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
    li.tabIndex = 0;
  };

  // --- the details of one place
  // Objects of a cluster have their kind in their name, files have not.
  const documentOf = (kind, source) => (source.startsWith(kind + " ") ? source : kind + " in " + source);
  const sources = (verb) => (verb.origins || []).map((i) => {
    const { form, source } = data.origins[i];
    const words = { catalogue: "the built-in catalogue", scale: "subresource scale of ", schemaKeys: "schema keys of ", annotation: "annotation of ", openAPI: "OpenAPI of " };
    if (form === "permissionSchema") return documentOf("PermissionSchema", source);
    return (words[form] === undefined ? form + " " : words[form]) + (source || "");
  }).join("; ");
  const lossText = (loss) => "not this field: " + loss.by + " is a barrier" + " at " + (loss.path || "the object") +
    (loss.one ? " for " + loss.one : "") + (loss.when.length ? " when " + loss.when.join(loss.set ? " and " : " or ") : "") + (loss.set ? " (" + documentOf("UncoveredPermissionSet", loss.set) + ")" : "");
  const chainList = (links) => element("ol", { class: "chain" }, ...links.map((link) => {
    const verb = link.of === undefined ? null : data.verbs[link.of];
    const covers = !verb ? "every field without a barrier" : link.verb === "granular:*" ? "every field without a barrier"
      : (link.path || "the object") + " and what is below it" + (link.ofOne ? ", of one " + verb.parameter : "");
    return element("li", { class: model.counts(link) ? "" : "lost" },
      verb ? element("button", { type: "button", class: "link verb", click: () => go({ verb: verb.text }) }, link.verb) : element("span", { class: "verb" }, "update, patch; create for a new object"),
      element("div", { class: "small" }, covers + (verb && sources(verb) ? " · from " + sources(verb) : "")),
      ...link.lost.map((loss) => element("div", { class: "small barrier" }, "■ " + lossText(loss))));
  }));
  const most = 200; // subjects of one list
  const accessDetails = (place) => {
    if (!access || !access.has(place)) return [];
    const source = access.sourceOf(place);
    const out = [element("h3", {}, "Who may change it" + (access.object ? " in " + access.object : ""))];
    if (source && source !== place) out.push(element("p", { class: "small" }, "As " + (source.key || "the object") + ", the nearest field above with a list of its own."));
    for (const { how, holders } of access.byHow(access.holders(place))) {
      const some = holders.slice(0, most);
      out.push(element("p", { class: "how" }, element("span", { class: "mark " + how.name }, how.mark + " " + how.name), " " + holders.length),
        element("ul", { class: "holders" }, ...some.map((holder) => element("li", {},
          element("button", { type: "button", class: "link", click: () => go({ subject: access.names[holder.subject] }) }, access.names[holder.subject]),
          holder.through ? element("div", { class: "small" }, holder.through) : null)),
        holders.length > most ? element("li", { class: "small" }, `and ${holders.length - most} more: write a name in Subject`) : null));
    }
    if (out.length === 1 || (source && !access.holders(place).length)) out.push(element("p", {}, "No subject may change it."));
    return out;
  };
  const details = (place) => {
    const node = data.nodes[place.node];
    $("place").textContent = model.printable(place.key || place.kind.kind);
    const chains = model.chains(place);
    const out = [element("p", { class: "small" }, "type " + data.strings[node.t] + (node.r ? "; " + (roles[node.r] || node.r) : ""))];
    out.push(...accessDetails(place));
    chains.forEach((links, i) => {
      out.push(element("h3", {}, chains.length > 1 ? "Verbs in tree " + (i + 1) + " of " + chains.length + ", from general to specific" : "Verbs that cover it, from general to specific"), chainList(links));
    });
    if (chains.length > 1) out.push(element("p", { class: "small" }, "The field becomes a part of other objects. A change needs a verb of each tree whose barrier holds, or of any tree if none holds."));
    const powers = [...new Set((node.v || []).flatMap((verb) => data.verbs[verb].powers || []))];
    if (powers.length) {
      out.push(element("h3", {}, "Powers of its verb"), element("ul", {}, ...powers.map((p) => element("li", {}, element("b", {}, "! " + data.powers[p].name), " " + data.powers[p].text))));
    }
    $("details").replaceChildren(...out);
  };

  // --- subjects, kinds and search
  const subjectList = () => {
    const order = access.names.map((_, i) => i).sort((a, b) => access.counts.of(b).all - access.counts.of(a).all || (access.names[a] < access.names[b] ? -1 : 1));
    const left = order.filter((i) => !subjects || subjects.has(i));
    const fields = (n) => n + (n === 1 ? " field" : " fields");
    const one = (i) => {
      const count = access.counts.of(i);
      const hows = [...count.hows].map(([how, n]) => how.mark + " " + n + " " + how.name).join(", ");
      const link = element("a", { href: address({ ...state, kind: model.idOf(access.kind), subject: access.names[i] }) }, access.names[i]);
      if (access.names[i] === state.subject) link.setAttribute("aria-current", "true");
      return element("li", {}, link, element("div", { class: "small" }, fields(count.all) + (hows ? ": " + hows : "")));
    };
    $("people").hidden = false;
    $("peopleAbout").textContent = (left.length < order.length ? left.length + " of " : "") + order.length + " subjects, by the number of fields that they may change" + (access.counts.more ? "; the tree is large, and counts are of its first part" : "");
    $("subjects").replaceChildren(...left.slice(0, most).map(one), ...(left.length > most ? [element("li", { class: "small" }, `and ${left.length - most} more: write a name in Subject`)] : []),
      ...(subjects ? [element("li", {}, element("button", { type: "button", class: "link", click: () => go({ subject: "" }) }, "all subjects"))] : []));
  };
  const kindList = () => {
    let group = null;
    const list = [];
    for (const kind of data.kinds) {
      const shown = model.shownIn(kind, filter);
      if (shown && !shown.has(kind.root)) continue;
      if (kind.group !== group) list.push(element("li", { class: "group" }, (group = kind.group) || "core"));
      const link = element("a", { href: address({ ...state, kind: model.idOf(kind), path: "" }) }, kind.kind + " " + kind.version + (kind.resource.includes("/") ? " (" + kind.resource + ")" : ""));
      if (model.idOf(kind) === state.kind) link.setAttribute("aria-current", "page");
      list.push(element("li", {}, link));
    }
    $("kinds").replaceChildren(...(list.length ? list : [element("li", { class: "small" }, "No kind passes the filter.")]));
    return list.filter((li) => !li.className).length;
  };
  const results = () => {
    const text = $("search").value;
    const found = model.search(text, 30);
    const clear = (change) => () => { $("search").value = ""; results(); go({ verb: "", show: "", ...change }); };
    const section = (title, list) => (list.length ? [element("h3", {}, title), element("ul", {}, ...list.map((one) => element("li", {}, one)))] : []);
    const link = (label, change) => element("button", { type: "button", class: "link", click: clear(change) }, label);
    const parts = [
      ...section("Kinds", found.kinds.map((kind) => link(model.idOf(kind), { kind: model.idOf(kind), path: "" }))),
      ...section("Verbs", found.verbs.map((verb) => link(verb, { verb }))),
      ...section("Fields" + (found.more ? " (the first)" : ""), found.places.map((place) => link(model.idOf(place.kind) + " " + place.key, { kind: model.idOf(place.kind), path: place.key }))),
    ];
    $("results").hidden = text.trim() === "";
    $("results").replaceChildren(...(parts.length ? parts : [element("p", {}, "Nothing has this text in its name.")]));
    if (text.trim()) $("status").textContent = `${found.kinds.length} kinds, ${found.verbs.length} verbs, ${found.places.length}${found.more ? " or more" : ""} fields found`;
  };

  const show = (next) => {
    const changed = next.kind !== state.kind || next.verb !== state.verb || next.show !== state.show || next.subject !== state.subject || !$("tree").firstElementChild;
    state = next;
    const kind = kindById.get(state.kind);
    if (!kind) { $("heading").textContent = "No kinds"; return; }
    if (changed) {
      filter = model.filterOf(state.show, state.verb);
      $("verb").value = state.verb;
      $("show").value = state.show;
      if (access) {
        subjects = access.matching(state.subject);
        const ofKind = access.shownTo(subjects);
        shownTo = kind === access.kind ? ofKind : () => true;
        $("subject").value = state.subject;
        subjectList();
      }
      const count = kindList();
      $("heading").textContent = model.printable(kind.kind) + (access && access.kind === kind && access.object ? " " + model.printable(access.object) : "");
      $("about").textContent = `group ${kind.group || "core"}, version ${kind.version}, resource ${kind.resource}` +
        (kind.lossy ? ". A write through this version may change fields that it does not show: it needs granular:* or the generic permission." : "") + (kind.instead ? " " + kind.instead + "." : "");
      $("tree").replaceChildren(item(model.root(kind)));
      if (filter || subjects) openAll(150); else open($("tree").firstElementChild);
      if (subjects) $("status").textContent = subjects.size ? `${subjects.size} ${subjects.size === 1 ? "subject passes" : "subjects pass"} the filter. The tree has the fields that ${subjects.size === 1 ? "it" : "any of them"} may change, and those above them.` : "No subject has this text in its name.";
      else $("status").textContent = filter ? `The filter leaves ${count} of ${data.kinds.length} kinds.` : "";
    }
    const place = model.find(kind, state.path) || model.root(kind);
    const li = openTo(place);
    select(li);
    if (state.path) li.firstElementChild.scrollIntoView({ block: "center" });
    details(place);
    // On a phone the details stay in view once a field is chosen.
    document.querySelector("aside").classList.toggle("chosen", state.path !== "");
    document.title = (state.path || kind.kind) + " · " + data.title;
  };

  // --- events
  $("tree").addEventListener("click", (event) => {
    const li = event.target.closest('[role="treeitem"]');
    if (!li) return;
    if (event.target.closest(".twist")) return li.getAttribute("aria-expanded") === "true" ? close(li) : open(li);
    if (places.get(li).key === state.path) (li.getAttribute("aria-expanded") === "true" ? close : open)(li);
    else open(li);
    focus(li);
    go({ path: places.get(li).key });
  });
  $("tree").addEventListener("keydown", (event) => {
    const li = event.target.closest('[role="treeitem"]');
    if (!li || event.ctrlKey || event.altKey || event.metaKey) return;
    const all = [...$("tree").querySelectorAll('[role="treeitem"]')];
    const at = all.indexOf(li);
    const isOpen = li.getAttribute("aria-expanded");
    const to = {
      ArrowDown: () => all[at + 1], ArrowUp: () => all[at - 1], Home: () => all[0], End: () => all[all.length - 1],
      ArrowRight: () => (isOpen === "true" ? all[at + 1] : (open(li), li)),
      ArrowLeft: () => (isOpen === "true" ? (close(li), li) : li.parentElement.closest('[role="treeitem"]')),
      Enter: () => (go({ path: places.get(li).key }), li), " ": () => (go({ path: places.get(li).key }), li),
    }[event.key];
    if (!to) return;
    event.preventDefault();
    const next = to();
    if (next) focus(next);
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "/" && !typing) { event.preventDefault(); $("search").focus(); $("search").select(); }
    if (event.key === "Escape" && event.target === $("search")) {
      $("search").value = "";
      results();
      ($("tree").querySelector('[tabindex="0"]') || $("heading")).focus();
    }
  });
  $("search").addEventListener("input", results);
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  $("search").addEventListener("keydown", (event) => {
    const first = $("results").querySelector("button");
    if (event.key === "Enter") { event.preventDefault(); if (first) first.click(); }
    if (event.key === "ArrowDown" && first) { event.preventDefault(); first.focus(); }
  });
  $("verb").addEventListener("change", () => go({ verb: $("verb").value }));
  $("subject").addEventListener("change", () => go({ subject: $("subject").value.trim() }));
  $("show").addEventListener("change", () => go({ show: $("show").value }));
  $("skip").addEventListener("click", (event) => { event.preventDefault(); ($("tree").querySelector('[tabindex="0"]') || $("heading")).focus(); });
  window.addEventListener("hashchange", () => show(readAddress()));
  window.addEventListener("popstate", () => show(readAddress()));

  for (const verb of [...new Set(data.verbs.map((v) => v.text))].sort()) $("verbs").append(element("option", { value: verb }));
  if (access) {
    $("subjectLabel").hidden = $("accessLegend").hidden = false;
    for (const name of access.names) $("subjectNames").append(element("option", { value: name }));
  }
  show(readAddress());
})();
