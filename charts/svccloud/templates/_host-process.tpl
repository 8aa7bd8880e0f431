{{/* The host of control planes without its Secret: documents after others. Takes the root; with `doorRanges` in it, the
     platform is elsewhere and comes from these. */}}
{{- define "svccloud.hostProcess" -}}
{{- with .Values.controlPlanes }}
{{- $name := printf "%s-control-planes" $.Release.Name }}
{{- $role := printf "%s-control-planes" (include "svccloud.clusterName" $) }}
{{- $parts := printf "%s-control-plane-parts" (include "svccloud.clusterName" $) }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $name }}
  labels: {{- include "svccloud.labels" $ | nindent 4 }}
data:
  host-cluster.yaml: |
    images:
      etcd: {{ .images.etcd | quote }}
      tunnel: {{ .images.tunnel | quote }}
      platform: {{ include "svccloud.image" $ | quote }}
      {{- with .images.sidecars }}
      sidecars: {{- toYaml . | nindent 8 }}
      {{- end }}
      releases: {{- toYaml .images.releases | nindent 8 }}
    storage:
      {{- with .storage.className }}
      className: {{ . | quote }}
      {{- end }}
      mebibytesOfOne: {{ .storage.mebibytesOfOne | int64 }}
      mebibytes: {{ .storage.mebibytes | int64 }}
    endpoint:
      type: {{ .endpoint.type }}
      {{- if eq .endpoint.type "NodePort" }}
      address: {{ required "controlPlanes.endpoint.address is needed with ports of nodes" .endpoint.address | quote }}
      {{- else }}
      annotations: {{ toJson .endpoint.annotations }}
      {{- end }}
    {{- if and .images.sidecars (not .snapshotKinds) }}{{ fail "controlPlanes.images.sidecars needs controlPlanes.snapshotKinds" }}{{ end }}
    snapshotKinds: {{ toJson .snapshotKinds }}
    {{- $url := .platform.url }}
    {{- if and $.doorRanges (not $url) }}{{ $url = $.Values.apiserver.publicUrl }}{{ end }}
    {{- if $url }}
    platform:
      url: {{ $url | quote }}
      port: {{ regexFind ":[0-9]+$" (urlParse $url).host | trimPrefix ":" | default (ternary "443" "80" (hasPrefix "https:" $url)) }}
      to: {{ toJson .platform.to }}
    {{- else if not $.doorRanges }}
    platform:
      url: {{ printf "http://%s-apiserver.%s.svc:%d" $.Release.Name $.Release.Namespace ($.Values.apiserver.service.port | int) | quote }}
      port: 8080
      to:
        - namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: {{ $.Release.Namespace | quote }} } }
          podSelector: { matchLabels: {{ include "svccloud.selector" (list $ "apiserver") | fromYaml | toJson }} }
    {{- end }}
    from:
      - namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: {{ $.Release.Namespace | quote }} } }
        podSelector: { matchLabels: {{ include "svccloud.selector" (list $ "control-planes") | fromYaml | toJson }} }
    {{- with .memoryMebibytes }}
    memoryMebibytes: {{ . | int64 }}
    {{- end }}
    nodeSelector: {{ toJson .nodeSelector }}
    tolerations: {{ toJson .tolerations }}
    rights: { serviceAccount: {{ $name | quote }}, namespace: {{ $.Release.Namespace | quote }}, clusterRole: {{ $parts | quote }} }
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  labels: {{- include "svccloud.labels" $ | nindent 4 }}
{{- with $.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $parts }}
  labels: {{- include "svccloud.labels" $ | nindent 4 }}
rules: {{- $.Files.Get "files/control-planes-rights.yaml" | trim | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $role }}
  labels: {{- include "svccloud.labels" $ | nindent 4 }}
rules:
  - apiGroups: [""]
    resources: [namespaces]
    verbs: [get, create, patch, delete]
  - apiGroups: [""]
    resources: [nodes]
    verbs: [list]
  # It gives itself that one role, in namespaces of control planes.
  - apiGroups: [rbac.authorization.k8s.io]
    resources: [rolebindings]
    verbs: [get, create, patch]
  - apiGroups: [rbac.authorization.k8s.io]
    resources: [clusterroles]
    resourceNames: [{{ $parts }}]
    verbs: [bind]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $role }}
  labels: {{- include "svccloud.labels" $ | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $role }}
subjects:
  - kind: ServiceAccount
    name: {{ $name }}
    namespace: {{ $.Release.Namespace }}
---
# Rights know no beginnings of names: what it writes is in namespaces of control planes.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $role }}
  labels: {{- include "svccloud.labels" $ | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - apiGroups: ["*"]
        apiVersions: ["*"]
        resources: ["*"]
        operations: [CREATE, UPDATE, DELETE]
  matchConditions:
    - name: host-process
      expression: {{ printf "request.userInfo.username == 'system:serviceaccount:%s:%s'" $.Release.Namespace $name | quote }}
  validations:
    - expression: "request.namespace.startsWith('svccloud-cp-') || (request.resource.resource == 'namespaces' && request.name.startsWith('svccloud-cp-'))"
      message: the host of control planes writes in their namespaces only
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ $role }}
  labels: {{- include "svccloud.labels" $ | nindent 4 }}
spec:
  policyName: {{ $role }}
  validationActions: [Deny]
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $name }}
  labels: {{- include "svccloud.labels" $ | nindent 4 }}
spec:
  {{- if $.doorRanges }}
  type: LoadBalancer
  loadBalancerSourceRanges: {{- toYaml $.doorRanges | nindent 4 }}
  {{- else }}
  type: ClusterIP
  {{- end }}
  selector: {{- include "svccloud.selector" (list $ "control-planes") | nindent 4 }}
  ports:
    - { name: control, port: 443, targetPort: control }
---
# One, which keeps records, keys and snapshots: control planes run on while it is away.
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ $name }}
  labels: {{- include "svccloud.labels" $ | nindent 4 }}
spec:
  replicas: 1
  serviceName: {{ $name }}
  selector:
    matchLabels: {{- include "svccloud.selector" (list $ "control-planes") | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "svccloud.labels" $ | nindent 8 }}
        app.kubernetes.io/component: control-planes
      annotations:
        svccloud.dev/settings: {{ toJson . | sha256sum }}
        {{- with $.Values.pods.annotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ $name }}
      securityContext: {{- include "svccloud.podSecurity" $ | nindent 8 }}
      {{- include "svccloud.scheduling" $ | nindent 6 }}
      containers:
        - name: control-planes
          image: {{ include "svccloud.image" $ }}
          imagePullPolicy: {{ $.Values.image.pullPolicy }}
          args: [hosting/pods/main.ts]
          env:
            - name: SVCCLOUD_DATA
              value: /data
            - name: SVCCLOUD_HOST_CLUSTER_FILE
              value: /etc/svccloud/host-cluster.yaml
            - name: SVCCLOUD_HOST
              value: 0.0.0.0
            - name: SVCCLOUD_CONTROL_PORT
              value: "8443"
            - name: SVCCLOUD_TOKEN_FILE
              value: /etc/svccloud-control/token
            - name: SVCCLOUD_CERTIFICATE_FILE
              value: /etc/svccloud-control/tls.crt
            - name: SVCCLOUD_KEY_FILE
              value: /etc/svccloud-control/tls.key
            - name: SVCCLOUD_LOG_LEVEL
              value: {{ $.Values.logLevel }}
          ports:
            - { name: control, containerPort: 8443 }
          readinessProbe:
            tcpSocket: { port: control }
            periodSeconds: 5
          resources: {{- toYaml .resources | nindent 12 }}
          securityContext: {{- include "svccloud.containerSecurity" $ | nindent 12 }}
          volumeMounts:
            - { name: data, mountPath: /data }
            - { name: temporary, mountPath: /tmp }
            - { name: settings, mountPath: /etc/svccloud, readOnly: true }
            - { name: control, mountPath: /etc/svccloud-control, readOnly: true }
      volumes:
        - name: temporary
          emptyDir: { sizeLimit: 64Mi }
        - name: settings
          configMap: { name: {{ $name }} }
        - name: control
          secret: { secretName: {{ $name }} }
  volumeClaimTemplates:
    - metadata: { name: data }
      spec:
        accessModes: [ReadWriteOnce]
        {{- with .snapshots.className }}
        storageClassName: {{ . }}
        {{- end }}
        resources: { requests: { storage: {{ .snapshots.size }} } }
{{- if $.Values.networkPolicy.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ $name }}
  labels: {{- include "svccloud.labels" $ | nindent 4 }}
spec:
  podSelector:
    matchLabels: {{- include "svccloud.selector" (list $ "control-planes") | nindent 6 }}
  policyTypes: [Ingress]
  ingress:
    - ports: [{ port: control, protocol: TCP }]
      from:
        - podSelector:
            matchExpressions:
              - { key: app.kubernetes.io/component, operator: In, values: [apiserver, controllers] }
        {{- with .allowedFrom }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end }}
{{- end }}
{{- end }}
