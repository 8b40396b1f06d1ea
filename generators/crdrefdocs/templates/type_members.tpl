{{- define "type_members" -}}
{{- if eq .Name "metadata" -}}
The [verbs of metadata](https://github.com/fieldperm/fieldperm/blob/main/docs/reference/kinds.md#every-kind) are those of every kind.
{{- else -}}
{{ markdownRenderFieldDoc .Doc }}
{{- end -}}
{{- end -}}
