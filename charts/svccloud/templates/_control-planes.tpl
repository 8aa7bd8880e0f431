{{/* Which host of control planes the platform has: of API server and controllers. */}}
{{- define "svccloud.controlPlanes" -}}
{{- if .Values.controlPlanes.enabled }}
- name: SVCCLOUD_CONTROL_PLANES_URL
  value: {{ printf "https://%s-control-planes.%s.svc" .Release.Name .Release.Namespace }}
- name: SVCCLOUD_CONTROL_PLANES_TOKEN_FILE
  value: /etc/svccloud-control-planes/token
- name: SVCCLOUD_CONTROL_PLANES_AUTHORITY_FILE
  value: /etc/svccloud-control-planes/ca.crt
- name: SVCCLOUD_CONTROL_PLANES_REGIONS
  value: {{ join "," .Values.controlPlanes.regions | quote }}
{{- end }}
{{- if .Values.controlPlanes.hostClusters.region }}
- name: SVCCLOUD_HOST_CLUSTERS_FILE
  value: /etc/svccloud-host-clusters/host-clusters.yaml
{{- end }}
{{- if .Values.controlPlanes.existingSecret }}
- name: SVCCLOUD_CONTROL_PLANES_FILE
  value: /etc/svccloud-control-planes-elsewhere/{{ .Values.controlPlanes.hostsKey }}
{{- end }}
{{- end }}
