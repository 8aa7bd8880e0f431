/** Managed services as the API answers them: they need guests that run, and those of the tier are simulated. Each
 *  answer is held against the document that the product serves, so that no page is shown what the API would not say. */
import type { Page } from 'playwright-core'
import type {
  Database,
  DatabaseBackup,
  KubernetesCluster,
  KubernetesClusterSnapshot,
  KubernetesNodePool,
  LoadBalancer,
  LoadBalancerMetrics,
  Network,
} from '../../../../client/schema.ts'
import { openDocumentCheck } from '../../../contract/document-check.ts'

const idOf = (number: number): string => `0198f000-0000-7000-8000-${String(number).padStart(12, '0')}`
const AT = '2026-06-01T12:00:00Z'
const LATER = '2027-06-01T12:00:00Z'
const NETWORK = idOf(9)

/** That all of them are in. */
const network: Network = {
  id: NETWORK,
  zone: 'eu-1a',
  region: 'eu-1',
  name: 'shop',
  ipv4_cidr: '10.0.0.0/24',
  ipv6_prefix: '2001:db8:1::/64',
  gateway_ipv4: '10.0.0.1',
  dhcp_enabled: true,
  dns_servers: [],
  router_id: null,
  edge_id: null,
  server_count: 0,
  labels: {},
  active_operation: null,
  created_at: AT,
}

const loadBalancer: LoadBalancer = {
  id: idOf(1),
  zone: 'eu-1a',
  name: 'entrance',
  network_id: NETWORK,
  plan: 'lb-small',
  state: 'running',
  is_healthy: true,
  health_detail: '',
  public_ipv4: '192.0.2.10',
  public_ipv6: '2001:db8::10',
  private_ipv4: '10.0.0.5',
  private_ipv6: null,
  nodes: [],
  configuration_generation: 7,
  is_configuration_applied: true,
  labels: {},
  certificates: [
    {
      id: idOf(11),
      name: 'shop',
      dns_names: ['shop.example.com', 'a-very-long-name-of-a-service.in-some-department.shop.example.com'],
      fingerprint_sha256: 'ab'.repeat(32),
      not_before: AT,
      not_after: LATER,
    },
  ],
  is_protected: false,
  managed_by: null,
  active_operation: null,
  created_at: AT,
  frontends: [
    {
      name: 'web',
      port: 443,
      mode: 'https',
      backend: 'shop',
      certificate_ids: [idOf(11)],
      allowed_cidrs: [],
      inbound_proxy_protocol: false,
      idle_timeout_seconds: 60,
    },
  ],
  backends: [
    {
      name: 'shop',
      algorithm: 'round_robin',
      health_check: {
        type: 'http',
        path: '/health',
        interval_seconds: 5,
        timeout_seconds: 2,
        rise: 2,
        fall: 3,
        expected_statuses: [],
      },
      proxy_protocol: 'none',
      sticky_cookie: null,
      members: [
        { id: idOf(12), name: 'a', address: '10.0.0.11', port: 8080, weight: 100, enabled: true, is_healthy: true },
        { id: idOf(13), name: 'b', address: '10.0.0.12', port: 8080, weight: 100, enabled: true, is_healthy: false },
        { id: idOf(14), name: 'c', address: '10.0.0.13', port: 8080, weight: 0, enabled: false, is_healthy: null },
      ],
    },
  ],
}

const traffic = { open_connections: 3, connections: 41_000, received_bytes: 1024, transmitted_bytes: 5 * 1024 ** 3 }
const metrics: LoadBalancerMetrics = {
  node_id: 'a',
  observed_at: AT,
  frontends: [{ name: 'web', ...traffic, requests: 90_000 }],
  members: [{ id: idOf(12), backend: 'shop', name: 'a', ...traffic }],
  omitted_members: 2,
}

export const pool: KubernetesNodePool = {
  id: idOf(21),
  cluster_id: idOf(2),
  name: 'workers',
  plan: 'tiny',
  count: 2,
  zones: ['eu-1a'],
  labels: {},
  taints: [],
  autoscaling: null,
  public_ipv4: false,
  max_unavailable: 1,
  version: '1.34',
  state: 'running',
  nodes: [22, 23].map((number) => ({
    server_id: idOf(number),
    hostname: `workers-${number}`,
    zone: 'eu-1a',
    state: 'started',
    is_ready: number === 22,
    kubelet_version: 'v1.34.2',
    public_ipv6: `2001:db8::${number}`,
    public_ipv4: null,
  })),
  active_operation: null,
}

const cluster: KubernetesCluster = {
  id: idOf(2),
  zone: 'eu-1a',
  region: 'eu-1',
  name: 'shop',
  version: '1.35',
  kubernetes_version: 'v1.35.0',
  available_upgrade: null,
  state: 'running',
  network_id: NETWORK,
  public_ipv4: false,
  private_endpoint: false,
  endpoint: 'https://shop.k8s.example.com',
  endpoint_ipv4: null,
  oidc_issuer_url: 'https://api.example.com',
  labels: {},
  health: {
    api_server: 'healthy',
    etcd_members_ready: 3,
    etcd_members_total: 3,
    has_etcd_quorum: true,
    nodes_ready: 1,
    nodes_total: 2,
    observed_at: AT,
    detail: '',
  },
  addons: [{ name: 'csi', version: '1.0.0' }],
  etcd_snapshot_schedule: '0 */6 * * *',
  etcd_snapshot_retention: 5,
  node_pools: [pool],
  platform: {
    state: 'failed',
    organisation_id: null,
    cluster_id: null,
    url: null,
    reason: 'The account belongs to no organisation.',
    next_attempt_at: null,
    registered_at: null,
  },
  is_protected: false,
  active_operation: null,
  created_at: AT,
}

const clusterSnapshot: KubernetesClusterSnapshot = {
  id: idOf(24),
  kind: 'scheduled',
  kubernetes_version: 'v1.35.0',
  size_bytes: 41_000_000,
  place: 'object_storage',
  created_at: AT,
  expires_at: LATER,
}

const database: Database = {
  id: idOf(3),
  zone: 'eu-1a',
  name: 'orders',
  network_id: NETWORK,
  engine: 'postgresql-17',
  plan: 'db-small',
  storage_gibibytes: 20,
  database_name: 'app',
  owner_name: 'app',
  host: 'orders.db.example.com',
  port: 5432,
  connection_uri: 'postgresql://app@orders.db.example.com:5432/app?sslmode=verify-full',
  state: 'running',
  is_healthy: true,
  health_detail: '',
  is_configuration_applied: true,
  backup_schedule: '0 2 * * *',
  backups: {
    is_enabled: true,
    retention_days: 7,
    earliest_recoverable_at: AT,
    latest_recoverable_at: LATER,
    observed_at: LATER,
    archive_failure: '',
    shortened_at: null,
  },
  archive_state: 'archiving',
  archive_pause: null,
  tls_server_name: 'orders.db.example.com',
  certificate_expires_at: LATER,
  ca_certificate: null,
  restored_from: null,
  is_protected: false,
  active_operation: null,
  created_at: AT,
}

const backup: DatabaseBackup = {
  id: 'full-1',
  kind: 'full',
  started_at: AT,
  completed_at: AT,
  size_bytes: 52_000_000,
  is_restorable: true,
}

/** By path of the API. */
const ANSWERS: Readonly<Record<string, object>> = {
  [`/v1/networks/${NETWORK}`]: { network },
  [`/v1/load-balancers/${loadBalancer.id}`]: { load_balancer: loadBalancer },
  [`/v1/load-balancers/${loadBalancer.id}/metrics`]: metrics,
  [`/v1/kubernetes-clusters/${cluster.id}`]: { kubernetes_cluster: cluster },
  [`/v1/kubernetes-clusters/${cluster.id}/snapshots`]: { items: [clusterSnapshot], next_cursor: null },
  [`/v1/databases/${database.id}`]: { database },
  [`/v1/databases/${database.id}/backups`]: {
    items: [backup],
    next_cursor: null,
    window: {
      earliest_recoverable_at: AT,
      latest_recoverable_at: LATER,
      gaps: [{ from: '2026-08-01T00:00:00Z', to: '2026-08-02T00:00:00Z' }],
    },
  },
}

/** Pages of items that `showManaged` answers. */
export const MANAGED_PATHS = [
  `/load-balancers/${loadBalancer.id}`,
  `/load-balancers/${loadBalancer.id}?tab=traffic`,
  `/load-balancers/${loadBalancer.id}?tab=metrics`,
  `/load-balancers/${loadBalancer.id}?tab=certificates`,
  `/kubernetes/${cluster.id}`,
  `/kubernetes/${cluster.id}?tab=pools`,
  `/kubernetes/${cluster.id}?tab=snapshots`,
  `/kubernetes/${cluster.id}?tab=platform`,
  `/databases/${database.id}`,
  `/databases/${database.id}?tab=recovery`,
] as const

/** Answers reads of managed services on the page; changes go to the product, which knows none of them. Throws when an
 *  answer is none of the API's. */
export async function showManaged(page: Page, url: string): Promise<void> {
  const document = openDocumentCheck((await (await fetch(`${url}/openapi.json`)).json()) as object) // a document is one
  for (const [path, answer] of Object.entries(ANSWERS)) {
    const text = JSON.stringify(answer)
    const header = (name: string): string | undefined =>
      name === 'content-type' ? 'application/json' : name === 'x-request-id' ? idOf(99) : undefined
    const fault = document.faultOf('GET', path, { status: 200, header, text })
    if (fault !== undefined) throw new Error(`GET ${path}: ${fault}`)
    await page.route(`${url}${path}`, (route) =>
      route.request().method() === 'GET' ? route.fulfill({ json: answer }) : route.fallback(),
    )
    await page.route(`${url}${path}?*`, (route) =>
      route.request().method() === 'GET' ? route.fulfill({ json: answer }) : route.fallback(),
    )
  }
}
