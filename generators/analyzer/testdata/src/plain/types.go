// Package plain has no permission marker, so nothing is said about its fields.
package plain

type Spec struct {
	Image string `json:"image"`
}
