{{- define "flake.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end -}}
{{- end }}

{{- define "flake.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "flake.labels" -}}
{{ include "flake.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* flake.value formats a value as the node and Kubernetes read it. Helm reads integers as float64. */}}
{{- define "flake.value" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ printf "%.0f" . }}{{ else if kindIs "slice" . }}{{ toJson . }}{{ else }}{{ . }}{{ end -}}
{{- end }}

{{- /* flake.rights is not empty if the nodes get their numbers from the API server. */}}
{{- define "flake.rights" -}}
{{- if eq .Values.numbers "kubernetes" }}
{{- range $generator := .Values.generators }}
{{- range $key := list "id" "worker" "datacenter" "partition" }}
{{- if eq (toString (get $generator $key)) "number" }}yes{{ end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "flake.env" -}}
{{- if eq .Values.workload "Deployment" }}
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
- name: FLAKE_NODE_NAME
  value: flake@$(POD_IP)
{{- else }}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: FLAKE_NODE_NAME
  value: flake@$(POD_NAME).{{ include "flake.name" . }}.$(POD_NAMESPACE).svc.{{ .Values.clusterDomain }}
{{- end }}
- name: FLAKE_NODE_COOKIE_FILE
  value: /etc/flake/cookie
- name: FLAKE_NODE_DRAIN_TIME
  value: {{ include "flake.value" .Values.drainTime | quote }}
- name: FLAKE_NODE_LISTEN
  value: "[::]:4370"
{{- if not .Values.epmd }}
- name: FLAKE_NODE_EPMD
  value: "off"
{{- end }}
{{- if .Values.tls.nodes }}
- name: FLAKE_NODE_TLS_CERT
  value: /etc/flake-tls/nodes/tls.crt
- name: FLAKE_NODE_TLS_KEY
  value: /etc/flake-tls/nodes/tls.key
- name: FLAKE_NODE_TLS_CA
  value: /etc/flake-tls/nodes/ca.crt
{{- end }}
- name: FLAKE_HTTP_LISTEN
  value: "[::]:8465"
- name: FLAKE_HTTP_METRICS
  value: "[::]:9464"
- name: FLAKE_HTTP_TOKEN_FILE
  value: /etc/flake/token
{{- if .Values.tls.http }}
- name: FLAKE_HTTP_TLS_CERT
  value: /etc/flake-tls/http/tls.crt
- name: FLAKE_HTTP_TLS_KEY
  value: /etc/flake-tls/http/tls.key
{{- end }}
- name: FLAKE_TIMESTAMP_PATH
  value: /var/lib/flake/timestamp
- name: FLAKE_WORKER_ID
  value: {{ ternary "assigned" "random" (eq .Values.numbers "etcd") }}
{{- if eq .Values.numbers "etcd" }}
{{- if not .Values.etcd.endpoints }}{{ fail "etcd.endpoints must be set, because numbers is etcd" }}{{ end }}
- name: FLAKE_NUMBERS_STORE
  value: etcd
- name: FLAKE_ETCD_ENDPOINTS
  value: {{ toJson .Values.etcd.endpoints | quote }}
{{- end }}
{{- if include "flake.rights" . }}
- name: FLAKE_NUMBERS_STORE
  value: kubernetes
- name: FLAKE_KUBERNETES_NAME
  value: {{ include "flake.name" . }}-numbers
{{- end }}
{{- range $i, $generator := .Values.generators }}
{{- range $key := concat (list "name" "format") (without (keys $generator | sortAlpha) "name" "format") }}
- name: FLAKE_GENERATOR_{{ add1 $i }}_{{ upper $key }}
{{- $value := get $generator $key }}
{{- if and (eq (toString $value) "number") (has $key (list "id" "worker" "datacenter" "partition")) }}
{{- if ne $.Values.numbers "ordinal" }}
  value: assigned
{{- else }}
  valueFrom:
    fieldRef:
      fieldPath: metadata.labels['apps.kubernetes.io/pod-index']
{{- end }}
{{- else }}
  value: {{ include "flake.value" $value | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- range $key, $value := .Values.settings }}
- name: FLAKE_{{ $key | replace "." "_" | upper }}
  value: {{ include "flake.value" $value | quote }}
{{- end }}
{{- end }}

{{- define "flake.readiness" -}}
/readyz{{ with .Values.readinessGenerators }}?generators={{ join "," . }}{{ end }}
{{- end }}

{{- define "flake.probe" -}}
path: {{ index . 1 }}
port: http
{{- if (index . 0).Values.tls.http }}
scheme: HTTPS
{{- end }}
{{- end }}
