{{- define "type" -}}
{{- if markdownShouldRenderType . }}
### {{ .Name }}

{{ .Doc }}
{{ if .References }}
Used by:{{ range .SortedReferences }} {{ markdownRenderTypeLink . }}{{ end }}
{{ end }}
{{- $isRoot := .GVK }}
{{- if .Members }}
| field | type | verb | description | default | validation |
|---|---|---|---|---|---|
{{ with .GVK -}}
| `apiVersion` | string | | `{{ .GroupVersion }}` | | |
| `kind` | string | | `{{ .Kind }}` | | |
{{ end -}}
{{ range .Members -}}
{{ if not (and $isRoot (has .Name (list "apiVersion" "kind"))) -}}
| `{{ .Name }}` | {{ markdownRenderType .Type }} | {{ template "permission" . }} | {{ template "type_members" . }} | {{ markdownRenderDefault .Default }} | {{ range .Validation }}{{ markdownRenderFieldDoc . }}<br />{{ end }} |
{{ end -}}
{{ end -}}
{{ end -}}
{{ if .EnumValues }}
| value | description |
|---|---|
{{ range .EnumValues -}}
| `{{ .Name }}` | {{ markdownRenderFieldDoc .Doc }} |
{{ end -}}
{{ end -}}
{{ end -}}
{{- end -}}
