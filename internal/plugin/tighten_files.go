package plugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/internal/printable"
	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/tighten"
)

// These are the files of --out.
const (
	addFile    = "1-add.yaml"
	removeFile = "2-remove.yaml"
	undoFile   = "undo.yaml"
)

// checkOut returns an error if the directory of --out has files that are not those of an earlier call.
func (o *tightening) checkOut() error {
	if o.out == "" {
		return nil
	}
	entries, err := os.ReadDir(o.out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--out %q cannot be read: %w: give an empty or a new directory", o.out, err)
	}
	for _, entry := range entries {
		if !slices.Contains([]string{addFile, removeFile, undoFile}, entry.Name()) || !entry.Type().IsRegular() {
			return fmt.Errorf("--out %q has %q, which this command does not write: give an empty or a new directory", o.out, entry.Name())
		}
	}
	return nil
}

// writeFiles writes the files of --out, and prints the commands for them.
func (o *tightening) writeFiles(p *tighten.Proposal, proof *tighten.Proof) error {
	if len(p.Change) == 0 {
		o.say("\nNo files were written.")
		return nil
	}
	if err := o.keepsUndo(p); err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil { //nolint:gosec // All users may read manifests.
		return fmt.Errorf("--out %q cannot be made: %w: give another directory", o.out, err)
	}
	files := p.Files()
	commands := o.commands(len(files.Add) > 0)
	// The way back is there first.
	for _, f := range []struct {
		name    string
		objects []any
		look    []string
	}{
		{undoFile, files.Undo, nil},
		{removeFile, files.Remove, o.beforeRemoving(p)},
		{addFile, files.Add, o.beforeAdding(proof)},
	} {
		if err := o.writeFile(f.name, p.Subject, commands, f.look, f.objects); err != nil {
			return err
		}
	}
	o.say("")
	for _, line := range commands {
		o.say("%s", line)
	}
	return nil
}

// keepsUndo returns an error if undo.yaml of an earlier call gives back what the new one would not: update and patch were taken since.
func (o *tightening) keepsUndo(p *tighten.Proposal) error {
	path := filepath.Join(o.out, undoFile)
	raw, err := os.ReadFile(path) //nolint:gosec // The user names the directory.
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: give --out another directory", err)
	}
	earlier, err := rbac.Decode(path, raw)
	if err != nil {
		return fmt.Errorf("%w: give --out another directory", err)
	}
	if lost := p.Restores(&earlier); len(lost) > 0 {
		return fmt.Errorf("%q restores %s, which has other rights by now, and would be overwritten: give --out another directory, or delete the file if nothing of it shall come back", path, lost[0])
	}
	return nil
}

// commands are those by which the files are used, as lines of text.
func (o *tightening) commands(adds bool) []string {
	path := func(name string) string { return shellWord(filepath.Join(o.out, name)) }
	back := "  kubectl replace -f " + path(undoFile)
	var out []string
	if adds {
		out = append(out, "Step 1 adds the granular verbs, and takes nothing away:", "  kubectl apply -f "+path(addFile))
		back += " && kubectl delete -f " + path(addFile)
	}
	return append(out, "Step 2, when the subject has made all of its writes, takes update and patch away. After a conflict run tighten again:",
		"  kubectl replace -f "+path(removeFile), "The way back restores these objects as they were, and overwrites what was changed since:", back)
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./+:@%=-]+$`)

// shellWord quotes a word for a shell if that is necessary.
func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// beforeAdding lists what to look at before step 1.
func (o *tightening) beforeAdding(proof *tighten.Proof) []string {
	var out []string
	if o.barriersUnknown() {
		out = append(out, noBarriers)
	}
	return slices.Concat(out, titled("new access: ", proof.New), titled("new access to read: ", proof.Read))
}

// beforeRemoving lists what to look at before step 2.
func (o *tightening) beforeRemoving(p *tighten.Proposal) []string {
	var out []string
	if o.policiesUnknown() {
		out = append(out, noPolicies)
	}
	missing := p.New
	if o.allowNew {
		missing = nil
	}
	var unused []string
	for _, resource := range p.Unused {
		unused = append(unused, fmt.Sprintf("update and patch on %s are taken away, and no verb takes their place", resource))
	}
	return slices.Concat(out, titled("gap: ", p.Gaps), titled("seen, and not in step 1: ", missing), titled("lost: ", p.Losses), titled("also decides: ", p.Policies), unused)
}

func titled(title string, texts []string) []string {
	var out []string
	for _, text := range texts {
		out = append(out, title+text)
	}
	return out
}

// writeFile writes a file with a head of comments. One without objects does not stay.
func (o *tightening) writeFile(name string, subject tighten.Subject, commands, look []string, objects []any) error {
	path := filepath.Join(o.out, name)
	if len(objects) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: delete it, because this proposal adds nothing", err)
		}
		return nil
	}
	lines := append([]string{"Granular verbs in place of update and patch, for " + subject.String() + ".", ""}, commands...)
	if len(look) > 0 {
		lines = append(lines, "", "Look at this first:")
		lines = append(lines, titled("- ", look)...)
	}
	var content strings.Builder
	for _, line := range lines {
		content.WriteString(strings.TrimRight("# "+printable.Text(line), " ") + "\n")
	}
	documents, err := tighten.Documents(objects)
	if err != nil {
		return err
	}
	content.Write(documents)
	if err := os.WriteFile(path, []byte(content.String()), 0o644); err != nil { //nolint:gosec // All users may read manifests.
		return fmt.Errorf("%w: give --out another directory", err)
	}
	return nil
}
