{{- define "gvList" -}}
# API reference

The column "verb" has the granular verb of a field, where it has one of its own. Any more general verb covers the field as well, unless it is
a barrier.

{{ range . -}}
{{ template "gvDetails" . }}
{{ end -}}
{{- end -}}
