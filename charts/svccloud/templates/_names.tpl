{{/* The labels of everything the chart makes. */}}
{{- define "svccloud.labels" -}}
app.kubernetes.io/name: svccloud
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* What selects the pods of a component: a list of the root, the component's name and perhaps its shard. */}}
{{- define "svccloud.selector" -}}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- range slice . 2 }}
svccloud.dev/shard: {{ . }}
{{- end }}
{{- end }}

{{/* Names of cluster-scoped objects carry the namespace, so that two releases do not meet. */}}
{{- define "svccloud.clusterName" -}}
{{ .Release.Namespace }}-{{ .Release.Name }}
{{- end }}

{{/* Of rights that last until the upgrade has ended: whether this is their end. */}}
{{- define "svccloud.earlier" -}}
helm.sh/hook: {{ ternary "post-upgrade,post-rollback,post-delete" "pre-upgrade" . }}
helm.sh/hook-delete-policy: {{ ternary "before-hook-creation,hook-succeeded" "before-hook-creation" . }}
{{- end }}

{{- define "svccloud.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "svccloud.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "svccloud.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* What every process of the control plane is told. */}}
{{- define "svccloud.environment" -}}
{{- /* fail and not required: `helm lint` passes over it without a warning. */ -}}
{{- if not .Values.database.existingSecret -}}
{{ fail "database.existingSecret must name the Secret with the URL of the database" }}
{{- end -}}
- name: SVCCLOUD_DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.database.existingSecret }}
      key: {{ .Values.database.secretKey }}
- name: SVCCLOUD_LOG_LEVEL
  value: {{ .Values.logLevel }}
{{- end }}

{{/* Replicas on different hosts where that can be. */}}
{{- define "svccloud.spread" -}}
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "svccloud.selector" . | nindent 6 }}
{{- end }}

{{- define "svccloud.probes" -}}
{{- /* A second, which is the default, is little for a process on a busy host: what is slow would be ended, too. */}}
startupProbe:
  httpGet: { path: /livez, port: operator }
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /livez, port: operator }
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: 3
readinessProbe:
  httpGet: { path: /readyz, port: operator }
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 2
{{- end }}

{{/* Users of the platform's own processes, comma separated. */}}
{{- define "svccloud.platformUsers" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ .Release.Name }}-apiserver,system:serviceaccount:{{ .Release.Namespace }}:{{ .Release.Name }}-controllers
{{- end }}

{{/* By which a process binds these ClusterRoles in a namespace; a policy bounds where and to whom. */}}
{{- define "svccloud.bindingRights" -}}
- apiGroups: [rbac.authorization.k8s.io]
  resources: [rolebindings]
  verbs: [create]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterroles]
  resourceNames: {{ toJson . }}
  verbs: [bind]
{{- end }}

{{/* What the processes may do in namespaces of accounts and nodes, which they bind there: JSON. */}}
{{- define "svccloud.namespaceRights" -}}
{{- $cluster := include "svccloud.clusterName" . }}
{{- $rights := list }}
{{- range list (list "acct-" "apiserver-accounts" "apiserver") (list "acct-" "controllers-namespaces" "controllers") (list "node-" "apiserver-nodes" "apiserver") (list "node-" "controllers-namespaces" "controllers") }}
{{- $account := dict "name" (printf "%s-%s" $.Release.Name (index . 2)) "namespace" $.Release.Namespace }}
{{- $rights = append $rights (dict "start" (index . 0) "clusterRole" (printf "%s-%s" $cluster (index . 1)) "serviceAccount" $account) }}
{{- end }}
{{- toJson $rights }}
{{- end }}

{{/* All zones that have a shard of their own, comma separated. A zone or a name in two shards is refused. */}}
{{- define "svccloud.shardedZones" -}}
{{- $zones := list }}
{{- $names := list }}
{{- range .Values.controllers.shards }}
{{- $names = append $names .name }}
{{- $zones = concat $zones .zones }}
{{- end }}
{{- if ne (len $zones) (len (uniq $zones)) }}{{ fail "controllers.shards: a zone is in two shards" }}{{ end }}
{{- if ne (len $names) (len (uniq $names)) }}{{ fail "controllers.shards: two shards have one name" }}{{ end }}
{{- $zones | sortAlpha | join "," }}
{{- end }}

{{/* How the pods of API server, controllers and migrations are scheduled, beside their spread. */}}
{{- define "svccloud.scheduling" -}}
{{- with .Values.pods.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pods.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pods.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pods.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}
