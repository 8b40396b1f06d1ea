
"use strict";
// The data of the page and what follows from it, without the document: names of places, chains of verbs, searches.
// Texts of the data come from others. They are shown as text, never as HTML.
const model = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const plain = /^[^.[\]"*\\]+$/;
  const step = (name) => (name < 0 ? "[*]" : plain.test(data.strings[name]) ? "." + data.strings[name] : "[" + JSON.stringify(data.strings[name]) + "]");
  const idOf = (kind) => [kind.group, kind.version, kind.kind].filter((part) => part !== "").join("/") + (kind.resource.includes("/") ? "@" + kind.resource : "");

  // printable escapes the characters of a text that cannot be seen or that reorder it.
  const printable = (text) => String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

  // A place is a node with the way to it. key is its path.
  const root = (kind) => ({ kind, node: kind.root, name: null, up: null, key: "", depth: 0 });
  const children = (place) => {
    const fields = data.nodes[place.node].f || [];
    const out = [];
    for (let i = 0; i < fields.length; i += 2) {
      out.push({ kind: place.kind, node: fields[i + 1], name: fields[i], up: place, key: place.key + step(fields[i]), depth: place.depth + 1 });
    }
    return out;
  };
  const way = (place) => (place ? [...way(place.up), place] : []);
  const repeats = (place) => {
    for (let above = place.up; above; above = above.up) if (above.node === place.node) return above;
    return null;
  };
  const find = (kind, key) => {
    let place = root(kind);
    for (;;) {
      if (place.key === key) return place;
      const next = children(place).find((child) => key === child.key || (key.startsWith(child.key) && ".[".includes(key[child.key.length])));
      if (!next) return null;
      place = next;
    }
  };

  const inStatus = (place) => place.key === ".status" || place.key.startsWith(".status.") || place.key.startsWith(".status[");
  const setsOn = (kind, verb, isStatus) => (kind.sets || []).filter((on) => on.verbs.includes(verb) && (!on.statusOnly || isStatus)).map((on) => ({ ...data.sets[on.set], statusOnly: on.statusOnly }));

  // chains returns the verbs of a place from general to specific, the generic permission first: fieldtree.Place.Chains in JavaScript.
  const chains = (place) => {
    const trees = Math.max(1, ...way(place).map((p) => (data.nodes[p.node].trees || []).length));
    const each = Array.from({ length: trees }, (_, tree) => chain(place, tree));
    const barred = each.filter((links) => links.some((link) => link.lost.length));
    const all = each.flat();
    const union = all.filter((link, i) => all.findIndex((other) => other.verb === link.verb) === i);
    return [...(barred.length ? barred : [union]), ...beside(place)];
  };
  // beside returns the chains with a barrier beside the verbs of the place, or of one above it. The verbs below the barrier pass it.
  const beside = (place) => way(place).flatMap((at, i, all) => [...(data.nodes[at.node].barring || []), ...(data.nodes[at.node].beside || [])].flatMap((index) => {
    const links = chain(at, 0);
    const before = links[0].lost.length;
    extend(links, index, at, inStatus(at));
    if (links[0].lost.length === before) return [];
    for (const below of all.slice(i + 1)) {
      if (data.nodes[below.node].trees) break;
      for (const verb of data.nodes[below.node].v || []) extend(links, verb, below, inStatus(below));
    }
    return [links];
  }));
  const chain = (place, tree) => {
    const links = [{ verb: "", lost: [] }];
    let begun = false;
    way(place).forEach((at, i) => {
      const node = data.nodes[at.node];
      begun = begun || tree < (node.trees || []).length;
      if (tree > 0 && i > 0 && !begun) return;
      const verbs = node.trees ? node.trees[Math.min(tree, node.trees.length - 1)] : node.v || [];
      for (const index of verbs) extend(links, index, at, i === 0 ? inStatus(place) : inStatus(at));
    });
    return links;
  };
  // bar takes the place out of the verbs of a chain where a verb is a barrier, and returns the losses by barriers for one value of the parameter.
  const bar = (links, index, at, isStatus) => {
    const verb = data.verbs[index];
    const lose = (loss) => links.forEach((link) => link.lost.push({ path: at.key, when: [], ...loss }));
    if (verb.excluded || verb.when) lose({ by: verb.text, when: verb.excluded ? [] : verb.when });
    const sets = setsOn(at.kind, index, isStatus).filter((set) => !set.actions);
    for (const set of sets.filter((s) => !s.one)) lose({ by: set.verb, when: set.when || [], set: set.source });
    if (!verb.parameter) return [];
    const ofOne = sets.filter((s) => s.one).map((set) => ({ path: at.key, by: set.verb, when: set.when || [], set: set.source, one: set.one }));
    ofOne.forEach(lose);
    return ofOne;
  };
  const extend = (links, index, at, isStatus) => {
    const verb = data.verbs[index];
    const ofOne = bar(links, index, at, isStatus);
    links.push({ verb: verb.base || verb.text, of: index, path: at.key, lost: ofOne });
    if (!verb.parameter) return;
    links.push({ verb: verb.text, of: index, path: at.key, ofOne: true, lost: [] });
  };
  const counts = (link) => !link.lost.some((loss) => loss.when.length === 0 && !loss.one);

  const hasBarrier = (kind, index) => {
    const verb = data.verbs[index];
    return verb.excluded || !!verb.when || setsOn(kind, index, true).length > 0;
  };
  // filterOf returns a function that says whether a verb of a kind is shown, null for no filter.
  const filterOf = (show, text) => {
    const wanted = text.trim().toLowerCase();
    if (!show && !wanted) return null;
    // The name of a verb means this verb, with and without its parameter. Any other text means every verb that has it in its name.
    const namesOf = (verb) => [verb.text.toLowerCase(), (verb.base || verb.text).toLowerCase()];
    const exact = data.verbs.some((verb) => namesOf(verb).includes(wanted));
    const named = data.verbs.map((verb) => !wanted || (exact ? namesOf(verb).includes(wanted) : verb.text.toLowerCase().includes(wanted)));
    return (kind, index) => {
      const verb = data.verbs[index];
      return named[index] && (show !== "barriers" || hasBarrier(kind, index)) && (show !== "powers" || !!verb.powers);
    };
  };

  // reaching returns the nodes at and below which holds is true of a node, found from the nodes upwards.
  const above = data.nodes.map(() => []);
  data.nodes.forEach((node, i) => { for (let f = 1; f < (node.f || []).length; f += 2) above[node.f[f]].push(i); });
  const reaching = (holds) => {
    const out = new Set();
    const next = [];
    data.nodes.forEach((node, i) => { if (holds(node, i)) { out.add(i); next.push(i); } });
    while (next.length) for (const parent of above[next.pop()]) if (!out.has(parent)) { out.add(parent); next.push(parent); }
    return out;
  };
  // shownIn returns the nodes that lead to a verb that passes the filter in a kind, without the root's own verb; null for all.
  const cache = new Map();
  const shownIn = (kind, filter) => {
    if (!filter) return null;
    if (cache.get(0) !== filter) { cache.clear(); cache.set(0, filter); }
    const at = kind.sets ? kind : 1; // Without sets, all kinds have the same.
    if (!cache.has(at)) cache.set(at, reaching((node) => (node.v || []).some((verb) => data.verbs[verb].text !== "granular:*" && filter(kind, verb))));
    return cache.get(at);
  };

  // search returns kinds, verbs and places that have a text in their name: at most limit of each.
  const search = (text, limit) => {
    const wanted = text.trim().toLowerCase();
    const out = { kinds: [], verbs: [], places: [], more: false };
    if (!wanted) return out;
    out.kinds = data.kinds.filter((kind) => (idOf(kind) + " " + kind.resource).toLowerCase().includes(wanted)).slice(0, limit);
    out.verbs = [...new Set(data.verbs.map((verb) => verb.text))].filter((verb) => verb.toLowerCase().includes(wanted)).sort().slice(0, limit);
    // ".spec.replicas" is looked for as a path, everything else as a part of a name.
    const isPath = /[.[]/.test(wanted);
    const last = wanted.split(/[.[\]]+/).filter((part) => part !== "" && part !== "*").pop() || "";
    const named = data.strings.map((name) => name.toLowerCase().includes(isPath ? last : wanted));
    const parents = new Set();
    data.nodes.forEach((node, i) => { for (let f = 0; f < (node.f || []).length; f += 2) if (node.f[f] >= 0 && named[node.f[f]]) parents.add(i); });
    const leads = reaching((_, i) => parents.has(i));
    let left = 20000;
    for (const kind of data.kinds) {
      const queue = [root(kind)];
      let found = 0;
      while (queue.length && found < 5 && left-- > 0) {
        const place = queue.shift();
        if (!leads.has(place.node) || repeats(place)) continue;
        for (const child of children(place)) {
          if (child.name >= 0 && named[child.name] && (!isPath || child.key.toLowerCase().includes(wanted))) {
            if (found++ < 3 && out.places.length < limit) out.places.push(child);
            else out.more = true;
          }
          queue.push(child);
        }
      }
    }
    return out;
  };

  return { data, printable, idOf, root, children, repeats, find, way, chains, counts, setsOn, inStatus, filterOf, shownIn, search };
})();
