
"use strict";
// Who may change what in one object, without the document; null if the data does not say. A field without a list of its own has that of the
// nearest field above it. Fields that the API server writes itself have no list.
const access = (() => {
  const { access: of, kinds, nodes, strings } = model.data;
  if (!of) return null;
  const kind = kinds[of.kind];
  const hows = [
    { name: "generic", mark: "●" }, { name: "granular", mark: "○" }, { name: "wildcard", mark: "✱" }, { name: "conditional", mark: "?" },
  ];
  const names = of.subjects.map((subject) => subject.kind + " " + subject.name);
  const lists = of.lists.map((list) => list.map(([subject, how, through]) => ({ subject, how: hows[how], through: through === undefined ? "" : strings[through] })));
  const listAt = new Map(Object.entries(of.paths));

  const has = (place) => place.kind === kind && nodes[place.node].r !== "serverWritten";
  // sourceOf returns the place whose list a place has, null if there is none.
  const sourceOf = (place) => {
    for (let at = place; at; at = at.up) if (listAt.has(at.key)) return at;
    return null;
  };
  const holders = (place) => {
    const at = sourceOf(place);
    return at ? lists[listAt.get(at.key)] : [];
  };

  // byHow returns the subjects of a list by how they may change the field, without a how that has none.
  const byHow = (list) => hows.map((how) => ({ how, holders: list.filter((holder) => holder.how === how) })).filter((one) => one.holders.length);

  // counts has for each subject the number of fields that it may change, in all and by how. Fields are those without fields below.
  const counts = (() => {
    const perList = lists.map(() => 0);
    let left = 100000;
    const visit = (place, list) => {
      if (!has(place) || left-- <= 0) return;
      const own = listAt.has(place.key) ? listAt.get(place.key) : list;
      const below = model.repeats(place) ? [] : model.children(place);
      if (!below.length && own >= 0) perList[own]++;
      for (const child of below) visit(child, own);
    };
    visit(model.root(kind), -1);
    const out = names.map(() => ({ all: 0, hows: new Map() }));
    lists.forEach((list, i) => {
      for (const subject of new Set(list.map((holder) => holder.subject))) out[subject].all += perList[i];
      for (const { subject, how } of list) out[subject].hows.set(how, (out[subject].hows.get(how) || 0) + perList[i]);
    });
    return { of: (subject) => out[subject], more: left <= 0 };
  })();

  // The name of a subject means this one. Any other text means every subject that has it in its name. Null means no filter.
  const matching = (text) => {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return null;
    const exact = names.some((name) => name.toLowerCase() === wanted);
    return new Set(names.map((_, i) => i).filter((i) => (exact ? names[i].toLowerCase() === wanted : names[i].toLowerCase().includes(wanted))));
  };
  // shownTo returns a function that says whether a place is one that any of the subjects may change, or leads to one.
  const shownTo = (subjects) => {
    if (!subjects) return () => true;
    const may = lists.map((list) => list.some((holder) => subjects.has(holder.subject)));
    const leads = new Set();
    for (const [key, list] of listAt) {
      const place = may[list] && model.find(kind, key);
      for (const at of place ? model.way(place) : []) leads.add(at.key);
    }
    return (place) => has(place) && (leads.has(place.key) || holders(place).some((holder) => subjects.has(holder.subject)));
  };

  return { kind, object: of.object, names, has, sourceOf, holders, byHow, counts, matching, shownTo };
})();
