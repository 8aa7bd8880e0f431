/** A world of a few objects, for rules that are judged without a cluster. */
import type { World } from '../../changes/kit/world.ts'
import type { KubeObject, ResourceType } from '../../kit/kube/object.ts'
import { Zone, type ZoneSpec, type ZoneStatus } from '../../resources/catalog/index.ts'

/** The world that holds these objects, by kind. */
export function worldWith(objects: readonly (readonly [type: ResourceType, object: KubeObject])[]): World {
  const listed = (type: ResourceType) => objects.filter(([known]) => known === type).map(([, object]) => object)
  return {
    find: <Spec, Status>(
      type: ResourceType<Spec, Status>,
      key: { readonly namespace?: string; readonly name: string },
    ) =>
      listed(type as ResourceType).find(
        ({ metadata }) => metadata.name === key.name && metadata.namespace === key.namespace,
      ) as KubeObject<Spec, Status> | undefined,
    list: <Spec, Status>(type: ResourceType<Spec, Status>, namespace?: string) =>
      listed(type as ResourceType).filter(
        ({ metadata }) => namespace === undefined || metadata.namespace === namespace,
      ) as KubeObject<Spec, Status>[],
  }
}

const zone = (name: string, spec: Partial<ZoneSpec>, status: Partial<ZoneStatus>) =>
  [
    Zone,
    {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Zone',
      metadata: { name },
      spec: { region: 'eu', isClosed: false, capabilities: [], ...spec },
      status,
    },
  ] as const

const zones = [
  zone('z1', {}, { hasPrivateNetworks: true }),
  zone('closed', { isClosed: true }, { hasPrivateNetworks: true }),
  zone('bare', {}, { networkObstacle: 'no host answers' }),
]

/** A zone with private networks, one that is closed, and one whose hosts do not answer. */
export const ZONES = worldWith(zones)

/** The same, and more. */
export const withZones = (...objects: Parameters<typeof worldWith>[0]): World => worldWith([...zones, ...objects])
