package schema

// named is a request of alice that shows an object with a name.
func named(name string) Request {
	return Request{Variables: func() (Variables, error) {
		return Variables{
			Request: map[string]any{"userInfo": map[string]any{"username": "alice"}},
			Object:  map[string]any{"metadata": map[string]any{"name": name}},
		}, nil
	}}
}
