/** What a host of control planes consists of here: a network, a cluster and its nodes, which belong to the platform.
 *  Each is created once, by its own operation. Pure. */
import type { OperationKind } from '../../../domain/operations.ts'
import { PLATFORM_ACCOUNT_ID } from '../../../domain/account/platform-account.ts'
import { derivedId } from '../../../domain/uuid.ts'
import { apiVersionOf, type KubeObject, Namespace } from '../../../kit/kube/object.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { KubernetesCluster } from '../../../resources/kubernetes-cluster/index.ts'
import { KubernetesHost } from '../../../resources/kubernetes-host/index.ts'
import { ACCOUNT_LABEL } from '../../../resources/kit/labels.ts'
import { Network } from '../../../resources/network/index.ts'
import { NodePool } from '../../../resources/node-pool/index.ts'
import type { OperationStanza } from '../../../resources/kit/shapes.ts'
import { SYSTEM_ACTOR } from '../../kit/operation/direct-edit.ts'
import { derivedStanza } from '../../kit/operation/stanza.ts'
import type { HostAction, HostObject } from './observed.ts'

export const NAMESPACE = accountNamespace(PLATFORM_ACCOUNT_ID)
/** The limit of CLUSTER_NAME and of names of networks. */
const NAME_CHARACTERS = 40

export interface Names {
  readonly network: string
  readonly cluster: string
  /** By zone, in the order of the spec. */
  readonly pools: readonly { readonly zone: string; readonly name: string }[]
}

/** Always the same for one host. */
export const namesOf = ({ metadata: { name: id }, spec }: HostObject): Names => ({
  network: derivedId(`${id}/network`),
  cluster: derivedId(`${id}/cluster`),
  pools: spec.zones.map((zone) => ({ zone, name: derivedId(`${id}/nodes/${zone}`) })),
})

/** For people, in the account of the platform. */
const titleOf = ({ spec: { region } }: HostObject): string =>
  `host-${region.replaceAll(/[^a-z0-9-]/g, '-')}`.slice(0, NAME_CHARACTERS).replace(/-+$/, '')

interface Beginning {
  readonly host: HostObject
  readonly now: Date
}

/** A part that is created again after a failure gets its own operation. */
const stanza = ({ host, now }: Beginning, part: string, kind: OperationKind, action?: string): OperationStanza => ({
  ...derivedStanza(kind, { seed: `${host.spec.operation?.id}/${part}`, actor: SYSTEM_ACTOR, now }),
  ...(action === undefined ? {} : { arguments: { action } }),
})

const metadataOf = ({ metadata: { name, uid = '' } }: HostObject, part: string, kind: string) => ({
  name: part,
  namespace: NAMESPACE,
  labels: { [ACCOUNT_LABEL]: PLATFORM_ACCOUNT_ID },
  finalizers: [finalizerOf({ kind })],
  ownerReferences: [
    { apiVersion: apiVersionOf(KubernetesHost), kind: KubernetesHost.kind, name, uid, controller: true },
  ],
})

export const namespaceOfPlatform: HostAction = {
  do: 'ensure',
  type: Namespace,
  draft: { metadata: { name: NAMESPACE, labels: { [ACCOUNT_LABEL]: PLATFORM_ACCOUNT_ID } }, spec: {} },
}

export const makeNetwork = (beginning: Beginning): HostAction => ({
  do: 'ensure',
  type: Network,
  draft: {
    metadata: metadataOf(beginning.host, namesOf(beginning.host).network, Network.kind),
    spec: {
      ...Network.spec.parse({ zone: beginning.host.spec.zones[0], name: titleOf(beginning.host) }),
      operation: stanza(beginning, 'network', 'network.sync', 'create'),
    },
  },
})

export function makeCluster(beginning: Beginning): HostAction {
  const { host } = beginning
  const { network: networkId, cluster } = namesOf(host)
  const { zones, version, controlPlaneRegion } = host.spec
  const spec = { zone: zones[0], name: titleOf(host), networkId, version, controlPlaneRegion }
  return {
    do: 'ensure',
    type: KubernetesCluster,
    draft: {
      metadata: metadataOf(host, cluster, KubernetesCluster.kind),
      spec: {
        ...KubernetesCluster.spec.parse({ ...spec, registersInPlatform: false }),
        operation: stanza(beginning, 'cluster', 'kubernetes_cluster.create'),
      },
    },
  }
}

export function makePools(
  beginning: Beginning,
  publicIpv4: boolean,
  missing: readonly string[],
): readonly HostAction[] {
  const { host } = beginning
  const { cluster: clusterId, pools } = namesOf(host)
  const { plan, nodesPerZone: count, version } = host.spec
  return pools
    .filter(({ name }) => missing.includes(name))
    .map(({ zone, name }, index) => ({
      do: 'ensure',
      type: NodePool,
      draft: {
        metadata: metadataOf(host, name, NodePool.kind),
        spec: {
          ...NodePool.spec.parse({ clusterId, zone, name: `hosts-${index}`, plan, count, version, publicIpv4 }),
          operation: stanza(beginning, name, 'node_pool.sync', 'create'),
        },
      },
    }))
}

/** A part that was started before the operation and was never completed: it is deleted, and created again. */
export const isLeftOver = (
  { metadata: { creationTimestamp = '' } }: KubeObject,
  { requestedAt }: Pick<OperationStanza, 'requestedAt'>,
): boolean => Date.parse(creationTimestamp) < Date.parse(requestedAt)
