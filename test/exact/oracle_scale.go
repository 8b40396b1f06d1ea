package exact

// scaled charges the replicas of a Scale that do not change: 0 may be none, and others lose what they own there.
func (o *oracle) scaled(root place) {
	spec := o.member(root, "spec", root.old.get("spec"), root.new.get("spec"))
	was, is := spec.old.get("replicas"), spec.new.get("replicas")
	if !o.same(was, is) || (was == nil) != (is == nil) {
		return
	}
	if o.kind.HidesZero() && (was == nil || was.is(null) || was.is(number) && was.text == "0") {
		o.charge(o.member(spec, "replicas", was, is), modified)
		return
	}
	o.owning = true
	o.charge(o.member(o.member(root, "spec", spec.old, spec.new), "replicas", was, is), owned)
}
