// Package printable escapes what other users may have written before it is shown: characters that move the cursor of a terminal or reorder its
// text. Start at Text. The package imports nothing of fieldperm.
package printable
