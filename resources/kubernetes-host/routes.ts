/** Hosts of control planes as operators see them: public shape, routes. The platform is told of one by its settings, or
 *  makes it; what it has it says itself. */
import { z } from 'zod'
import { KUBERNETES_HOST_STATES } from '../../domain/kubernetes-host/rules.ts'
import { OperationView } from '../operation/index.ts'
import { DateTime, Uuid, ZoneName } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'

const NODES_PER_ZONE_MAXIMUM = 100
const RegionName = z.string().min(1).max(63)
const Count = z.int().min(0)

export const KubernetesHostView = z
  .strictObject({
    id: Uuid,
    region: RegionName.describe('Whose clusters have their control planes there.'),
    zones: z.array(z.string()).describe('Zones whose clusters it serves.'),
    version: z
      .string()
      .nullable()
      .describe('Newest release of Kubernetes that it offers; null while it does not answer.'),
    state: z
      .enum(KUBERNETES_HOST_STATES)
      .describe(
        'bootstrapping is being made; degraded has no room for another control plane; error does not answer, or ' +
          'could not be made: its operation says why.',
      ),
    node_count: Count.describe('Machines that it runs on.'),
    clusters_hosted: Count.describe('Control planes that clusters have there.'),
    clusters_capacity: Count.describe('How many it can have together; as many as it has while it does not answer.'),
    etcd_capacity_bytes: Count.describe('What is free on the disks for data of etcd; 0 while it does not answer.'),
    created_at: DateTime.describe('When the platform first knew of it.'),
  })
  .meta({ id: 'KubernetesHost' })
export type KubernetesHostView = z.infer<typeof KubernetesHostView>

const verbs = verbsOf({
  path: '/v1/operator/kubernetes-hosts',
  area: 'Managed Kubernetes',
  noun: 'kubernetes_host',
  view: KubernetesHostView,
  staff: { reads: 'any', changes: 'operations' },
  access: { resource: 'regions', scope: 'cluster' },
})

export const listKubernetesHosts = verbs.listWhole('list_kubernetes_hosts', {
  summary: 'List the hosts of control planes',
  query: z.strictObject({ region: RegionName.optional() }),
})

export const getKubernetesHost = verbs.read('get_kubernetes_host', { summary: 'Read a host of control planes' })

export const bootstrapKubernetesHost = verbs.post('bootstrap_kubernetes_host', '', {
  summary: 'Make a host of control planes',
  description:
    'Makes a cluster of Kubernetes of servers that the platform owns, and the host process in it; its own control ' +
    'plane is run by the host of another region, which the settings name. A failed bootstrap is continued ' +
    'by the same request. Answers 409 in a region that has one, and 503 where the platform is not configured for it.',
  starts: ['kubernetes_host.bootstrap'],
  body: z
    .strictObject({
      region: RegionName.describe('A region without a host.'),
      zones: z
        .array(ZoneName)
        .min(1)
        .max(16)
        .describe('The zone of the region that its machines are in: one, for now.'),
      plan: z.string().min(1).max(63).describe('Plan of its machines.'),
      nodes_per_zone: z.int().min(1).max(NODES_PER_ZONE_MAXIMUM).describe('Machines in each zone.'),
      version: z.string().min(1).max(32).describe('Minor version of Kubernetes that it runs itself.'),
    })
    .meta({ id: 'BootstrapKubernetesHost' }),
  example: { region: 'eu-1', zones: ['eu-1a'], plan: 'starter-2c-4g', nodes_per_zone: 3, version: '1.36' },
  answers: { 202: z.strictObject({ kubernetes_host: KubernetesHostView, operation: OperationView }) },
  refuses: [400, 409, 503],
})

export const KUBERNETES_HOST_ROUTES = [listKubernetesHosts, getKubernetesHost, bootstrapKubernetesHost] as const
