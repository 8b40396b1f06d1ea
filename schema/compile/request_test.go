package compile

// ofAlice is a request of alice.
func ofAlice() (map[string]any, error) {
	return map[string]any{"userInfo": map[string]any{"username": "alice"}}, nil
}
