// Package reviews has the reviews that every peer decides, with the only correct answers, and the one way to test and to measure a peer.
//
// Read Case first, then deployment.go for what changes, and measure.go for what is measured. It imports the standard library only, so
// that each peer keeps the libraries that its authors chose.
package reviews
