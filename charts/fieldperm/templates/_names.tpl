{{- define "fieldperm.image" -}}
{{- $i := .Values.image -}}
{{- if $i.digest }}{{ $i.repository }}@{{ $i.digest }}{{ else }}{{ $i.repository }}:{{ $i.tag | default .Chart.AppVersion }}{{ end -}}
{{- end }}

{{- /* A generated file, for the namespace of the release. */ -}}
{{- define "fieldperm.generated" -}}
{{- $root := index . 0 -}}
{{- $root.Files.Get (printf "files/%s" (index . 1)) | replace "fieldperm-system" $root.Release.Namespace -}}
{{- end }}

{{- define "fieldperm.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "fieldperm.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "fieldperm.token" -}}
name: token
projected:
  defaultMode: 0440
  sources:
  - serviceAccountToken:
      path: token
      expirationSeconds: 3607
  - configMap:
      name: kube-root-ca.crt
      items:
      - {key: ca.crt, path: ca.crt}
  - downwardAPI:
      items:
      - path: namespace
        fieldRef:
          fieldPath: metadata.namespace
{{- end }}
