// Package browser drives the pages of kubectl fieldperm (-o html) in Chromium. It has tests only, and is a module of its own, so
// that the client of the browser is no dependency of fieldperm. No test looks for programs, so $CHROMIUM names the browser. Run it with:
//
//	CHROMIUM=/usr/bin/chromium go -C test/browser test ./...
//
// With -args -shots DIRECTORY it writes pictures of the page.
package browser
