//go:build !integration

package corpus

const everyCLIStep = false
