package generate

import (
	"bytes"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fieldperm/fieldperm/generators/markers"
	"github.com/fieldperm/fieldperm/generators/openapi"
)

func newOpenAPI() *cobra.Command {
	var dir string
	var check bool
	command := &cobra.Command{
		Use:   "openapi paths=PACKAGES... --output-dir DIR [--check]",
		Short: "Add permission verbs to the OpenAPI definitions of an aggregated API server",
		Long: `openapi reads permission markers of Go types, and writes ` + openapi.FileName + ` beside the file of
openapi-gen. Its function PermissionVerbs adds the verbs to the definitions:

  config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(
      openapi.PermissionVerbs(openapi.GetOpenAPIDefinitions), namer)

It panics when a definition is missing or old. A marker that ends in no definition is an error. A server whose
markers all have the form +k8s:openapi-gen=x-kubernetes-permission-verb:x, on structs and their fields, needs no
such file.

Ends with 1 for an error, or with --check if the file is not up to date.`,
		Example: `  # Write the file beside that of openapi-gen.
  fieldperm-gen openapi paths=./pkg/apis/... --output-dir pkg/generated/openapi

  # In CI: fail if a marker has changed and the file has not.
  fieldperm-gen openapi paths=./pkg/apis/... --output-dir pkg/generated/openapi --check`,
		Args: func(_ *cobra.Command, args []string) error {
			for _, arg := range args {
				if !strings.HasPrefix(arg, "paths=") {
					return fmt.Errorf("argument %q: is not known: write paths=./pkg/apis/... for the packages with the types", arg)
				}
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			var paths []string
			for _, arg := range args {
				paths = append(paths, strings.FieldsFunc(strings.TrimPrefix(arg, "paths="), func(r rune) bool { return r == ',' || r == ';' })...)
			}
			switch {
			case len(paths) == 0:
				return errors.New("paths is missing: write paths=./pkg/apis/... for the packages with the types")
			case dir == "":
				return errors.New("--output-dir is missing: name the directory of the file that openapi-gen writes")
			}
			content, err := permissionVerbs(paths, dir)
			if err != nil {
				return err
			}
			return writeOrCheck(command, filepath.Join(dir, openapi.FileName), content, check)
		},
	}
	command.Flags().StringVar(&dir, "output-dir", "", "`DIR`ectory of the file that openapi-gen writes")
	command.Flags().BoolVar(&check, "check", false, "write nothing, and fail if the file is not up to date")
	return command
}

// permissionVerbs returns the content of the file.
func permissionVerbs(paths []string, dir string) ([]byte, error) {
	name, err := packageOf(dir)
	if err != nil {
		return nil, err
	}
	roots, err := markers.Load("", nil, paths...)
	if err != nil {
		return nil, err
	}
	set, errs := markers.Read(roots)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	permissions, errs := openapi.Permissions(set)
	switch {
	case len(errs) > 0:
		return nil, errors.Join(errs...)
	case len(permissions) == 0:
		return nil, fmt.Errorf("paths %q: have no permission marker: write one such as +permission-verb:\"example.com/color\" above a field, or name other packages", paths)
	}
	return openapi.Render(name, permissions)
}

// packageOf returns the name of the package in a directory, without the file that is generated.
func packageOf(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", fmt.Errorf("--output-dir: %w", err)
	}
	slices.Sort(files)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || filepath.Base(file) == openapi.FileName {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly)
		if err != nil {
			return "", err
		}
		return parsed.Name.Name, nil
	}
	return "", fmt.Errorf("--output-dir %q: has no Go file: run openapi-gen first, with this --output-dir", dir)
}

// writeOrCheck writes a file, or with check compares it.
func writeOrCheck(command *cobra.Command, path string, content []byte, check bool) error {
	if !check {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return fmt.Errorf("--output-dir: %w", err)
		}
		return nil
	}
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("--output-dir: %w", err)
	}
	if err != nil || !bytes.Equal(old, content) {
		return fmt.Errorf("%s: is not what the markers say: run %q without --check", path, command.CommandPath())
	}
	return nil
}
