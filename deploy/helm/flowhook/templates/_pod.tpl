{{/* The name of all objects: the release, with "flowhook" unless its name contains that. Suffixes have up to 10 letters. */}}
{{- define "flowhook.name" -}}
{{- (contains "flowhook" .Release.Name | ternary .Release.Name (printf "%s-flowhook" .Release.Name)) | trunc 52 | trimSuffix "-" -}}
{{- end }}

{{/* Labels that select the pods of this release. */}}
{{- define "flowhook.selector" -}}
app.kubernetes.io/name: flowhook
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "flowhook.labels" -}}
{{ include "flowhook.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The role whose nodes serve the API. */}}
{{- define "flowhook.server" -}}
{{- eq .Values.database.kind "sqlite" | ternary "all" "api" -}}
{{- end }}

{{/* The spec of a pod: `root`, `role`, and for a Job its command in `args`. */}}
{{- define "flowhook.pod" -}}
{{- $values := .root.Values }}
{{- $sqlite := eq $values.database.kind "sqlite" }}
{{- $settings := $values.settings }}
{{- $isServer := eq .role (include "flowhook.server" .root) }}
{{- $mounts := and $values.workflows.files (has .role (list "worker" "all")) -}}
# Otherwise Kubernetes sets FLOWHOOK_PORT to a URL if there is a Service named flowhook.
enableServiceLinks: false
automountServiceAccountToken: false
terminationGracePeriodSeconds: {{ add (default 25 $settings.drainSeconds) 15 }}
{{- if .args }}
restartPolicy: Never
{{- else }}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "flowhook.selector" $.root | nindent 8 }}
        app.kubernetes.io/component: {{ $.role }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  # Otherwise Kubernetes makes the encryption key in the volume readable for the group.
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
containers:
  - name: flowhook
    image: {{ printf "%s:%s" $values.image.repository (default .root.Chart.AppVersion $values.image.tag) | quote }}
    imagePullPolicy: {{ $values.image.pullPolicy }}
    args: {{ default (list "serve") .args | toJson }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: { drop: [ALL] }
    env:
      # A directory in the volume, because the service creates it with access only for itself.
      - { name: FLOWHOOK_DATA, value: /data/flowhook }
      {{- if not $sqlite }}
      - { name: FLOWHOOK_ROLE, value: {{ .role }} }
      - name: FLOWHOOK_DATABASE
        valueFrom:
          secretKeyRef:
            name: {{ default $values.secretName $values.database.secretName }}
            key: {{ $values.database.secretKey }}
      {{- end }}
      - name: FLOWHOOK_ENCRYPTION_KEY
        valueFrom:
          secretKeyRef: { name: {{ $values.secretName }}, key: encryption-key, optional: {{ $sqlite }} }
      {{- if $isServer }}
      - name: FLOWHOOK_BOOTSTRAP_KEY
        valueFrom:
          secretKeyRef: { name: {{ $values.secretName }}, key: bootstrap-key, optional: true }
      {{- end }}
      {{- if and $values.ingress.host (not $settings.publicUrl) }}
      - name: FLOWHOOK_PUBLIC_URL
        value: {{ empty $values.ingress.tlsSecretName | ternary "http" "https" }}://{{ $values.ingress.host }}
      {{- end }}
      {{- range $name, $value := $settings }}
      - name: FLOWHOOK_{{ snakecase $name | upper }}
        {{- /* YAML reads on and off as booleans; Helm reads numbers as floating-point numbers, such as 1e+06. */}}
        value: {{ (kindIs "bool" $value | ternary (empty $value | ternary "off" "on") (kindIs "float64" $value | ternary (int64 $value) $value)) | quote }}
      {{- end }}
      {{- with $values.env }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- if not .args }}
    ports:
      - { name: http, containerPort: 8080 }
    # The service listens after it has migrated the database, which may take minutes.
    startupProbe:
      httpGet: { path: /livez, port: http }
      periodSeconds: 5
      failureThreshold: 180
    livenessProbe:
      httpGet: { path: /livez, port: http }
      periodSeconds: 10
      timeoutSeconds: 5
      failureThreshold: 6
    readinessProbe:
      httpGet: { path: /readyz, port: http }
      periodSeconds: 5
      timeoutSeconds: 5
      failureThreshold: 2
    {{- end }}
    {{- with (index $values .role).resources }}
    resources:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    volumeMounts:
      - { name: data, mountPath: /data }
      - { name: tmp, mountPath: /tmp }
      {{- if $mounts }}
      - { name: workflows, mountPath: /flowhook/workflows, readOnly: true }
      {{- end }}
      {{- with $values.volumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
volumes:
  {{- if or .args (not $sqlite) }}
  - { name: data, emptyDir: {} }
  {{- end }}
  - { name: tmp, emptyDir: {} }
  {{- if $mounts }}
  - name: workflows
    configMap:
      name: {{ include "flowhook.name" .root }}-workflows
      items:
        {{- range $path, $_ := $values.workflows.files }}
        - { key: {{ replace "/" "." $path }}, path: {{ $path }} }
        {{- end }}
  {{- end }}
  {{- with $values.volumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (deepCopy (index $values .role).pod) $values.pod }}
{{ toYaml . }}
{{- end }}
{{- end }}
