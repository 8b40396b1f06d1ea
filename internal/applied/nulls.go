package applied

// PruneNulls removes null members from a configuration, at any depth, as kubectl apply does before it creates an object.
func PruneNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			if member == nil {
				delete(value, key)
			} else {
				PruneNulls(member)
			}
		}
	case []any:
		for _, item := range value {
			PruneNulls(item)
		}
	}
}
