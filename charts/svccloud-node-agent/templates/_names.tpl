{{- define "agent.labels" -}}
app.kubernetes.io/name: svccloud-node-agent
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "agent.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* How the agent of a host is scheduled: a list of the root and the host's label. */}}
{{- define "agent.scheduling" -}}
{{- $pods := (index . 0).Values.pods -}}
nodeSelector:
  {{- /* The host last: no value may move an agent to another. */}}
  {{- merge (dict "kubernetes.io/hostname" (index . 1)) $pods.nodeSelector | toYaml | nindent 2 }}
{{- with $pods.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pods.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pods.topologySpreadConstraints }}
topologySpreadConstraints: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pods.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}
