package schema

// named is a request of alice that shows an object with a name.
func named(name string) Request {
	return Request{
		Fields: func() (map[string]any, error) {
			return map[string]any{"userInfo": map[string]any{"username": "alice"}}, nil
		},
		Objects: func() (any, any, error) { return map[string]any{"metadata": map[string]any{"name": name}}, nil, nil },
	}
}
