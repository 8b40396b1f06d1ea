package exact

// scaled charges the replicas of a Scale that do not change: other managers lose their ownership of them.
func (o *oracle) scaled(root place) {
	spec := o.member(root, "spec", root.old.get("spec"), root.new.get("spec"))
	was, is := spec.old.get("replicas"), spec.new.get("replicas")
	if !o.same(was, is) || (was == nil) != (is == nil) {
		return
	}
	o.owning = true
	o.charge(o.member(o.member(root, "spec", spec.old, spec.new), "replicas", was, is), owned)
}
