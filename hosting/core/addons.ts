/** Add-ons that the platform installs in a cluster for its nodes: the name server of its services. Its image is part of
 *  the image of the nodes. */
import {
  type ControlPlaneDesired,
  DNS_SERVICE_NUMBER,
  serviceAddress,
} from '../../integrations/control-planes/control.ts'
import { COREDNS_IMAGE, COREDNS_VERSION } from '../../domain/kubernetes-cluster/versions.ts'
import { apply, type KubeApi } from './kube-api.ts'

export const ADDONS = [{ name: 'coredns', version: COREDNS_VERSION }] as const

const NAME = 'coredns'
const NAMESPACE = 'kube-system'
/** Labels that everybody knows for the DNS service, regardless of its implementation. */
const LABELS = { 'k8s-app': 'kube-dns' }
const CORE = `/api/v1/namespaces/${NAMESPACE}`
const RBAC = '/apis/rbac.authorization.k8s.io/v1'

/** Names outside of the cluster are forwarded to the name servers of the node, if it has any. In a closed cluster a
 *  separate block answers that such names do not exist. It must be separate, because in the same block it would take
 *  precedence over the cluster's names. */
const OUTSIDE = `    forward . /etc/resolv.conf {
        max_concurrent 1000
    }
`
const NOTHING_OUTSIDE = `.:53 {
    errors
    template ANY ANY {
        rcode NXDOMAIN
    }
}
`

const corefile = (isClosed: boolean): string => `${isClosed ? 'cluster.local:53 in-addr.arpa:53 ip6.arpa:53' : '.:53'} {
    errors
    health {
        lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    prometheus :9153
${isClosed ? '' : OUTSIDE}    cache 30
    loop
    reload
    loadbalance
}
${isClosed ? NOTHING_OUTSIDE : ''}`

/** Whether a pod belongs to the cluster's name server. */
export const isOfNameServer = ({
  namespace,
  labels,
}: {
  readonly namespace: string
  readonly labels: Readonly<Record<string, string>>
}): boolean => namespace === NAMESPACE && Object.entries(LABELS).every(([key, value]) => labels[key] === value)

const objectOf = (kind: string, apiVersion: string, more: object) => ({
  apiVersion,
  kind,
  metadata: { name: NAME, labels: LABELS },
  ...more,
})

/** May be repeated at every start; does nothing without an IPv4 range of services. A playground is closed: its only
 *  node cannot resolve names outside. */
export async function applyAddons(
  api: KubeApi,
  { serviceCidrs, guest }: Pick<ControlPlaneDesired, 'serviceCidrs' | 'guest'>,
): Promise<void> {
  const isClosed = guest !== undefined
  const clusterIP = serviceAddress(serviceCidrs[0] ?? '', DNS_SERVICE_NUMBER)
  if (clusterIP === undefined) return
  await apply(api, `${CORE}/serviceaccounts`, objectOf('ServiceAccount', 'v1', {}))
  await apply(api, `${RBAC}/clusterroles`, objectOf('ClusterRole', 'rbac.authorization.k8s.io/v1', { rules: RULES }))
  await apply(api, `${RBAC}/clusterrolebindings`, objectOf('ClusterRoleBinding', 'rbac.authorization.k8s.io/v1', BOUND))
  await apply(api, `${CORE}/configmaps`, objectOf('ConfigMap', 'v1', { data: { Corefile: corefile(isClosed) } }))
  await apply(
    api,
    `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`,
    objectOf('Deployment', 'apps/v1', { spec: { ...SPEC, replicas: isClosed ? 1 : 2 } }),
  )
  await apply(
    api,
    `/apis/policy/v1/namespaces/${NAMESPACE}/poddisruptionbudgets`,
    objectOf('PodDisruptionBudget', 'policy/v1', { spec: { maxUnavailable: 1, selector: { matchLabels: LABELS } } }),
  )
  const ports = [portOf('dns', 'UDP', 53), portOf('dns-tcp', 'TCP', 53), portOf('metrics', 'TCP', 9_153)]
  await apply(api, `${CORE}/services`, {
    ...objectOf('Service', 'v1', { spec: { clusterIP, selector: LABELS, ports } }),
    metadata: { name: 'kube-dns', labels: { ...LABELS, 'kubernetes.io/name': 'CoreDNS' } },
  })
}

const portOf = (name: string, protocol: string, port: number) => ({ name, protocol, port, targetPort: port })

const RULES = [
  { apiGroups: [''], resources: ['endpoints', 'services', 'pods', 'namespaces'], verbs: ['list', 'watch'] },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
]
const BOUND = {
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: NAME },
  subjects: [{ kind: 'ServiceAccount', name: NAME, namespace: NAMESPACE }],
}

const probe = (path: string, port: number) => ({ httpGet: { path, port, scheme: 'HTTP' } })

const SPEC = {
  selector: { matchLabels: LABELS },
  strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1 } },
  template: {
    metadata: { labels: LABELS },
    spec: {
      serviceAccountName: NAME,
      priorityClassName: 'system-cluster-critical',
      // DNS of the node instead of the cluster: otherwise the name server would query itself.
      dnsPolicy: 'Default',
      tolerations: [{ key: 'CriticalAddonsOnly', operator: 'Exists' }],
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: 'kubernetes.io/hostname',
          whenUnsatisfiable: 'ScheduleAnyway',
          labelSelector: { matchLabels: LABELS },
        },
      ],
      containers: [
        {
          name: NAME,
          image: COREDNS_IMAGE,
          imagePullPolicy: 'IfNotPresent',
          args: ['-conf', '/etc/coredns/Corefile'],
          resources: { limits: { memory: '170Mi' }, requests: { cpu: '50m', memory: '70Mi' } },
          ports: [
            { name: 'dns', containerPort: 53, protocol: 'UDP' },
            { name: 'dns-tcp', containerPort: 53, protocol: 'TCP' },
            { name: 'metrics', containerPort: 9_153, protocol: 'TCP' },
          ],
          livenessProbe: {
            ...probe('/health', 8_080),
            initialDelaySeconds: 60,
            timeoutSeconds: 5,
            failureThreshold: 5,
          },
          readinessProbe: { ...probe('/ready', 8_181), timeoutSeconds: 5 },
          securityContext: {
            allowPrivilegeEscalation: false,
            capabilities: { add: ['NET_BIND_SERVICE'], drop: ['ALL'] },
            readOnlyRootFilesystem: true,
          },
          volumeMounts: [{ name: 'config', mountPath: '/etc/coredns', readOnly: true }],
        },
      ],
      volumes: [{ name: 'config', configMap: { name: NAME, items: [{ key: 'Corefile', path: 'Corefile' }] } }],
    },
  },
}
